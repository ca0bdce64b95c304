package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/desk/claims"
	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/model"
	"tare/desk/predict"
)

// allDoubts is one of each type of doubt.
var allDoubts = []data.Doubt{
	data.Emulated{}, data.Omitted{}, data.NotMeasured{}, data.TrialsFailed{}, data.SharedLoad{}, data.OneRound{}, data.UnsteadyHost{}, data.WithinUnsteadiness{}, data.NarrowHost{}, data.Trend{}, data.TimedOut{}, data.Uncorrected{}, data.NoBareMetal{},
	data.NoReference{}, data.BaselineFailed{}, data.NoCommonRound{}, data.OneCommonRound{}, data.BaselineZero{}, data.Unbounded{}, data.UnpairedRounds{}, data.BaselineElsewhere{}, data.Overflow{}, data.IgnoresFlushes{}, data.FoundState{}, data.ShortRuns{}, data.FlushesIgnored{}, data.StateFound{}, data.GuestSaid{},
	data.WarmupFailed{}, data.TracedFailed{}, data.KernelChanged{}, data.Quieted{}, data.RobustDiffers{}, data.Stalled{}, data.QuietDiffers{}, data.HostIsGuest{}, data.Looks{}, data.FewRounds{}, data.Torn{}, data.MoreWarnings{},
	explain.LargerBaseline{}, explain.NoBareMetalSize{}, explain.NoBareMetalWork{}, explain.BaselineUntraced{}, explain.AllTracedFailed{}, explain.NoCompleteRound{},
	explain.IncompleteRounds{}, explain.Unbelievable{}, explain.SomeTracedFailed{}, explain.EventsLost{}, explain.JustSignificant{}, explain.Silent{}, explain.Coarse{}, explain.TracerMissing{},
	explain.Unseen{}, explain.OtherMetric{}, explain.Untraced{}, explain.SharedConnections{}, explain.FromWakes{}, explain.AtSockets{},
	model.TooFewSizes{}, model.NothingCounts{}, model.NotSeparable{}, model.OneHostSize{}, model.AlikeSizes{}, model.SeveralHosts{}, model.SeveralImages{}, model.OneDegree{},
	model.NotFitted{}, model.WithinUnsteadiness{}, model.NoRatio{}, model.NoBounds{}, model.NoSize{}, model.OtherBaseline{}, model.FewCommonRounds{},
	advise.LadderRung{}, advise.PartOnline{}, advise.NoValue{}, advise.NoDirection{}, advise.NoRatioInterval{}, advise.NothingBeside{}, advise.NoPrediction{}, advise.UnsteadySize{}, advise.RatiosRanked{}, advise.SomeFailed{},
	advise.SeveralCPUSets{}, advise.Extrapolated{}, advise.Ambiguous{}, advise.NoPrice{}, advise.TooManyInstances{}, advise.StricterObjective{}, advise.UnknownPrice{}, advise.RatioOnly{}, advise.UnknownRate{},
	predict.Untraced{}, predict.Uncounted{}, predict.TooFewProbes{}, predict.TooFewWorks{}, predict.TooWide{}, predict.Unlike{}, predict.OtherKernel{}, predict.OtherSize{}, predict.NotFitted{}, predict.Included{}, predict.IgnoredFlushes{},
	claims.OnlyEmulated{}, claims.Unmeasured{}, claims.EveryTrialFailed{}, claims.WithinUnsteadiness{}, claims.Unsteady{}, claims.NeedsHostCores{}, claims.NeedsCHR{},
	claims.PaperLeavesOut{}, claims.NeedsSize{}, claims.NotStudied{}, claims.NotTogether{}, claims.NeedsTwo{}, claims.UnlikeHosts{}, claims.NoCommonRound{}, claims.NoValue{}, claims.LowerBound{}, claims.Unrecorded{},
	data.Extended{}, data.Unseen{}, data.SeldomHeld{}, compare.Differs{}, compare.DesignDiffers{}, data.NotTraced{}, data.TracerSilent{}, data.HostsNetwork{}, data.NoSuchMetric{}, data.UsageUnknown{}, data.NeverTogether{},
}

// fill gives what v is made of values: those that are nothing, and those that are something.
func fill(v reflect.Value, something bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), something)
			}
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*model.Overhead]() || something {
			v.Set(reflect.New(v.Type().Elem()))
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(data.NotMeasured{}))
	case reflect.Slice:
		if something {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
	case reflect.String:
		if something {
			v.SetString("text")
		}
	case reflect.Bool:
		v.SetBool(something)
	case reflect.Int, reflect.Int64:
		if something {
			v.SetInt(3)
		}
	case reflect.Float64:
		if something {
			v.SetFloat(1.5)
		}
	}
}

// A page of a folder is the same wherever the folder lies.
func TestDoubtsCanNameFoldersWithoutTheirPaths(t *testing.T) {
	of := 0
	for _, d := range allDoubts {
		v := reflect.New(reflect.TypeOf(d)).Elem()
		fill(v, true)
		dir := v.FieldByName("Dir")
		if !dir.IsValid() {
			continue
		}
		of++
		dir.SetString("/home/me/R")
		doubt, is := v.Interface().(data.FolderDoubt)
		if !is {
			t.Errorf("%T is not a data.FolderDoubt", d)
			continue
		}
		if said := Doubt(doubt.InFolder(filepath.Base)); strings.Contains(said, "/home") || !strings.Contains(said, "R") {
			t.Errorf("%T: %q", d, said)
		}
	}
	if of < 5 {
		t.Errorf("only %d doubts are about a folder", of)
	}
}

// Every doubt has a sentence, whatever its arguments are, and no sentence is of a doubt that there is not.
func TestEveryDoubtHasItsSentence(t *testing.T) {
	known := map[string]bool{}
	for _, d := range allDoubts {
		name := reflect.TypeOf(d).String()
		known[name] = true
		for _, something := range []bool{false, true} {
			v := reflect.New(reflect.TypeOf(d)).Elem()
			fill(v, something)
			d := v.Interface().(data.Doubt)
			if said := Doubt(d); (something && said == "") || strings.Contains(said, "%!") {
				t.Errorf("%s: %q", name, said)
			}
			if Footnote(d) == "" && something {
				t.Errorf("%s: no footnote", name)
			}
		}
	}
	text, err := texts.ReadFile("doubts.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range regexp.MustCompile(`define "(?:brief )?([^"]+)"`).FindAllSubmatch(text, -1) {
		if !known[string(of[1])] {
			t.Errorf("the sentence for %s is of no doubt", of[1])
		}
	}
	for _, dir := range []string{"advise", "claims", "compare", "data", "explain", "ladder", "model"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || files == nil {
			t.Fatalf("no files of %s: %v", dir, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, is := d.(*ast.FuncDecl)
				if !is || f.Name.Name != "Doubt" || f.Recv == nil {
					continue
				}
				if of, is := f.Recv.List[0].Type.(*ast.Ident); is && !known[dir+"."+of.Name] {
					t.Errorf("%s.%s is not among this test's doubts", dir, of.Name)
				}
			}
		}
	}
}

package tare

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// core are the folders of the packages that know no kind of study, each for its own files. The instruments are not among them: lab/memory reads the memory of any
// processes, whoever asks.
var core = []string{
	"notebook", "lab/study", "lab/studyfile", "lab/session", "lab/crowd", "lab/measure",
	"desk/advise", "desk/apply", "desk/chart", "desk/claims", "desk/compare", "desk/data", "desk/explain", "desk/export", "desk/history", "desk/ladder", "desk/model", "desk/page", "desk/show", "desk/terminal",
	"desk/words",
}

// What permitted names are of.
const (
	account = "the account of the memory of any processes, which tare memory prints"
	watched = "the memory of the cgroup that tare observe looks at"
	bytesOf = "the memory of a host, an instance or a guest"
)

// namesOfKinds are names in the core that are a kind's, too, and what they are of there.
var namesOfKinds = map[string]string{
	"notebook/memory.go":     account,
	"notebook MemoryAccount": account, "notebook MemoryWeight": account, "notebook MemoryGuest": account, "notebook MemoryProcess": account, "notebook MemoryPart": account, "notebook MemoryRAM": account,
	"notebook MemoryFrames": account, "notebook MemoryShare": account, "notebook MemoryDuplicates": account, "notebook MemoryAlike": account, "notebook MemoryGiveBack": account,
	"notebook Instance.Memory": bytesOf, "notebook Host.Memory": bytesOf, "notebook Limits.Memory": bytesOf, "notebook Treatment.MemoryWithheld": bytesOf,
	"notebook Observation.Memory": watched, "notebook ObservedMemory": watched,
	"studyfile Place.OtherMemory": bytesOf, "session Lab.memory": bytesOf,
	"terminal/memory.go": "what tare memory prints", "terminal text.memory": "what tare memory prints", "words/memory.go": "what tare memory prints",
	"export Row.Memory": "bytes of memory of an instance", "export choice.Memory": "bytes of memory of an instance",
	"model/fit.go": "a model fitted to ratios", "model Overhead.fit": "a model fitted to ratios", "model Overhead.byFit": "a model fitted to ratios",
	"advise adviser.fit": "a model fitted to ratios", "page sizeFit": "a model fitted to ratios",
}

// wordsOf are the words that a name of Go is put together of.
func wordsOf(name string) (words []string) {
	from := 0
	for i, r := range name {
		if i > from && unicode.IsUpper(r) {
			words, from = append(words, name[from:i]), i
		}
	}
	return append(words, name[from:])
}

// namedAfter says whether a name is of a kind.
func namedAfter(name string, kinds []string) bool {
	return slices.ContainsFunc(wordsOf(name), func(w string) bool { return slices.Contains(kinds, strings.ToLower(w)) })
}

// declared are the types, fields and methods that a file declares, as the exceptions name them.
func declared(f *ast.File) (all []string) {
	fields := func(of string, list *ast.FieldList) {
		for _, field := range list.List {
			for _, n := range field.Names {
				all = append(all, of+"."+n.Name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			all = append(all, n.Name.Name)
			switch t := n.Type.(type) {
			case *ast.StructType:
				fields(n.Name.Name, t.Fields)
			case *ast.InterfaceType:
				fields(n.Name.Name, t.Methods)
			}
		case *ast.FuncDecl:
			if n.Recv != nil {
				of := n.Recv.List[0].Type
				if star, is := of.(*ast.StarExpr); is {
					of = star.X
				}
				if id, is := of.(*ast.Ident); is {
					all = append(all, id.Name+"."+n.Name.Name)
				}
			}
		}
		return true
	})
	return all
}

// compared are the texts that a file compares values with.
func compared(f *ast.File) (all []string) {
	take := func(list ...ast.Expr) {
		for _, e := range list {
			if lit, is := e.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					all = append(all, s)
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				take(n.X, n.Y)
			}
		case *ast.CaseClause:
			take(n.List...)
		}
		return true
	})
	return all
}

// A kind of study is measured by its package in lab/measure and shown by its package in desk/show. The core of both wings has no file, type, field or method of one,
// and asks no value whether it is one.
func TestTheCoreHasNoNameOfAKind(t *testing.T) {
	kinds := kindsOf(t, "desk/show", "kinds", "showtest")
	used := map[string]bool{}
	named := func(what string) bool {
		_, permitted := namesOfKinds[what]
		used[what] = true
		return !permitted
	}
	for _, folder := range core {
		pkg := filepath.Base(folder)
		for _, s := range sources(t, folder) {
			stem := strings.TrimSuffix(filepath.Base(s.path), ".go")
			if s.test || filepath.Dir(s.path) != folder {
				continue
			}
			if slices.Contains(kinds, stem) && named(pkg+"/"+stem+".go") {
				t.Errorf("%s is named after a kind of study", s.path)
			}
			for _, name := range declared(s.File) {
				if last := name[strings.LastIndex(name, ".")+1:]; namedAfter(last, kinds) && named(pkg+" "+name) {
					t.Errorf("%s: %s is named after a kind of study", s.path, name)
				}
			}
			for _, text := range compared(s.File) {
				if slices.Contains(kinds, strings.ReplaceAll(text, "-", "")) {
					t.Errorf("%s compares a value with %q, which is a kind of study", s.path, text)
				}
			}
		}
	}
	for what := range namesOfKinds {
		if !used[what] {
			t.Errorf("there is no %s: it needs no permission", what)
		}
	}
}

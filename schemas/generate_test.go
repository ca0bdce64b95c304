//go:build linux

package schemas

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/desk/claims"
	"tare/desk/export"
	"tare/desk/show"
	"tare/desk/show/kinds"
	"tare/lab/session"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
	"tare/yamlfile"
)

// schema is a JSON schema, or a part of one.
type schema = map[string]any

// generator makes the schema of one file.
type generator struct {
	*testing.T
	defs     schema            // of structures, by the names of their types
	comments map[string]string // of packages, types and fields: "lab/studyfile", "lab/studyfile.Spec", "lab/studyfile.Spec.Name"
}

// text is what a string is read from.
var text = schema{"$ref": "#/$defs/text"}

// oneOrMore is a value, or a list of such.
func oneOrMore(s schema) schema {
	return schema{"anyOf": []schema{s, {"type": "array", "items": s}}}
}

// own is the schema of a type that decodes itself. If allowed is not empty, no other values are valid.
func own(t reflect.Type, allowed []string) schema {
	switch t {
	case reflect.TypeFor[studyfile.Values](), reflect.TypeFor[claims.Values]():
		return oneOrMore(limited(allowed))
	case reflect.TypeFor[workload.Bytes]():
		return text
	case reflect.TypeFor[claims.Share]():
		return schema{"type": "string", "pattern": "^[0-9.]+%$"}
	case reflect.TypeFor[studyfile.Neighbours]():
		count := schema{"anyOf": []schema{{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+/core$"}}}
		busy := schema{}
		for _, name := range notebook.Busy {
			busy[name] = count
		}
		return oneOrMore(schema{"type": "object", "properties": busy, "additionalProperties": false})
	}
	return nil
}

func limited(allowed []string) schema {
	if allowed == nil {
		return text
	}
	return schema{"enum": allowed}
}

// of is the schema of a type.
func (g *generator) of(t reflect.Type, allowed []string) schema {
	if s := own(t, allowed); s != nil {
		return s
	}
	if t == reflect.TypeFor[studyfile.Rounds]() {
		return schema{"anyOf": []schema{{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/" + g.define(t)}}}
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()) {
		g.Fatalf("%v reads itself: say in own what it reads", t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem(), allowed)
	case reflect.Slice:
		return schema{"type": "array", "items": g.of(t.Elem(), allowed)}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": g.of(t.Elem(), nil)}
	case reflect.Struct:
		return schema{"$ref": "#/$defs/" + g.define(t)}
	case reflect.String:
		return limited(allowed)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int:
		return schema{"type": "integer"}
	}
	g.Fatalf("no schema for %v", t)
	return nil
}

// define adds the schema of a structure to the definitions, and returns its name.
func (g *generator) define(t reflect.Type) string {
	name := t.String()
	if g.defs[name] != nil {
		return name
	}
	properties, required := schema{}, []string{}
	g.defs[name] = schema{"type": "object", "properties": properties, "additionalProperties": false} // first, because a structure may contain itself
	var allowed map[string][]string
	if l, ok := reflect.New(t).Interface().(yamlfile.Limited); ok {
		allowed = l.Allowed()
	}
	for _, f := range yamlfile.Fields(t) {
		p := maps.Clone(g.of(f.Type, allowed[f.Key]))
		if d := g.about(t, f); d != "" {
			p["description"] = d
		}
		properties[f.Key] = p
		if f.Tag.Get("jsonschema") == "required" {
			required = append(required, f.Key)
		}
	}
	if len(required) > 0 {
		g.defs[name].(schema)["required"] = required
	}
	return name
}

// about is the comment of a field of a structure, or of one inlined in it, for people who write the file: it begins with the key instead of
// the field's name, and names no function.
func (g *generator) about(t reflect.Type, f yamlfile.Field) string {
	if n := len(f.Index); n > 1 {
		t = t.FieldByIndex(f.Index[:n-1]).Type
	}
	about := regexp.MustCompile(` \(\w+\.\w+\)`).ReplaceAllString(g.comment(t.PkgPath(), t.Name()+"."+f.Name), "")
	if rest, named := strings.CutPrefix(about, f.Name+" "); named {
		about = f.Key + " " + rest
	}
	return about
}

// comment is the comment of a name in one of the module's packages, or of the package itself if the name is empty.
func (g *generator) comment(pkg, name string) string {
	folder := strings.TrimPrefix(pkg, "tare")
	if _, read := g.comments[folder]; !read {
		g.comments[folder] = ""
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			g.Fatalf("no files of %s: %v", pkg, err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				g.Fatal(err)
			}
			g.take(folder, file)
		}
	}
	if name != "" {
		folder += "." + name
	}
	return strings.Join(strings.Fields(g.comments[folder]), " ")
}

// take collects the comments of a file.
func (g *generator) take(folder string, file *ast.File) {
	g.comments[folder] += file.Doc.Text()
	ast.Inspect(file, func(n ast.Node) bool {
		of, is := n.(*ast.TypeSpec)
		if !is {
			return true
		}
		if s, is := of.Type.(*ast.StructType); is {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					about := f.Doc.Text()
					if about == "" {
						about = f.Comment.Text()
					}
					g.comments[folder+"."+of.Name.Name+"."+name.Name] = about
				}
			}
		}
		return true
	})
}

// file is the schema of a file that is decoded into a type, as JSON.
func (g *generator) file(t reflect.Type, title string) []byte {
	name := g.define(t)
	s := maps.Clone(g.defs[name].(schema))
	s["$schema"], s["title"], s["$defs"] = "https://json-schema.org/draft/2020-12/schema", title, g.defs
	delete(g.defs, name)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		g.Fatal(err)
	}
	return b.Bytes()
}

// answered is the schema of a type that Tare writes as JSON: its keys are the tags of the fields.
func (g *generator) answered(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[stats.Number]():
		return schema{"type": []string{"number", "null"}}
	case reflect.TypeFor[stats.Quotient]():
		number := schema{"type": []string{"number", "null"}}
		return schema{"type": "object", "required": []string{"value", "low", "high", "n"}, "properties": schema{"value": number, "low": number, "high": number, "n": schema{"type": "integer"}}}
	case reflect.TypeFor[stats.Verdict]():
		return schema{"enum": []stats.Verdict{stats.Slower, stats.Faster, stats.Equivalent, stats.Inconclusive}}
	case reflect.TypeFor[notebook.Better]():
		return schema{"enum": []notebook.Better{notebook.Lower, notebook.Higher, notebook.Neither}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schema{"anyOf": []schema{g.answered(t.Elem()), {"type": "null"}}}
	case reflect.Slice:
		return schema{"type": "array", "items": g.answered(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": g.answered(t.Elem())}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Struct:
		name := t.String()
		if g.defs[name] == nil {
			properties, required := g.answeredFields(t)
			g.defs[name] = schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
		}
		return schema{"$ref": "#/$defs/" + name}
	}
	return g.of(t, nil)
}

// answeredFields are the keys of a structure, those of embedded structures first, and which are never absent.
func (g *generator) answeredFields(t reflect.Type) (properties schema, required []string) {
	properties = schema{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			p, r := g.answeredFields(f.Type)
			maps.Copy(properties, p)
			required = append(required, r...)
			continue
		}
		key, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" {
			continue
		}
		p := maps.Clone(g.answered(f.Type))
		p["description"] = g.comment(t.PkgPath(), t.Name()+"."+f.Name)
		properties[key] = p
		if option == "" {
			required = append(required, key)
		}
	}
	return properties, required
}

// summary is the schema of what `tare summary --format json` prints.
func (g *generator) summary() []byte {
	t := reflect.TypeFor[export.Answer]()
	g.answered(t)
	g.defs[t.String()].(schema)["properties"].(schema)["schema"].(schema)["const"] = export.SummarySchema
	row := g.defs[reflect.TypeFor[export.AnswerRow]().String()].(schema)["properties"].(schema)
	for _, k := range kinds.All {
		if key := k.(*show.Kind).JSON; key != "" {
			row[key] = schema{"description": "measured by a study of the kind " + k.Name() + "; what it holds may change without a new number of the schema"}
		}
	}
	return g.file(t, "An answer of Tare: tare summary --format json")
}

// fleet is the schema of what `tare summary FLEET --format json` prints.
func (g *generator) fleet() []byte {
	t := reflect.TypeFor[export.FleetAnswer]()
	g.answered(t)
	g.defs[t.String()].(schema)["properties"].(schema)["schema"].(schema)["const"] = export.FleetSchema
	return g.file(t, "An answer of Tare over many hosts: tare summary FLEET --format json")
}

// generate makes the schemas, by name.
func generate(t *testing.T) map[string][]byte {
	start := func() *generator {
		return &generator{t, schema{"text": schema{"type": []string{"string", "number", "boolean"}}}, map[string]string{}}
	}
	all := map[string][]byte{
		"workload": start().file(reflect.TypeFor[workload.Workload](), "A workload of Tare: "+workload.File),
		"claims":   start().file(reflect.TypeFor[claims.File](), "Published findings that Tare tests"),
	}
	all["summary"] = (&generator{t, schema{}, map[string]string{}}).summary()
	all["fleet"] = (&generator{t, schema{}, map[string]string{}}).fleet()
	g := start()
	spec := g.defs[g.define(reflect.TypeFor[studyfile.Spec]())].(schema)["properties"].(schema)
	for _, k := range session.Known.Kinds {
		if k.Part.Read == nil {
			continue
		}
		of := reflect.TypeOf(k.Part.File)
		p := g.of(of, nil)
		_, about, _ := strings.Cut(g.comment(of.PkgPath(), ""), " ") // "Package NAME measures …"
		_, p["description"], _ = strings.Cut(about, " ")
		spec[k.Name] = p
	}
	var engines []string
	for _, platform := range session.Known.Engines.Platforms() {
		engines = append(engines, session.Known.Engines.Names(platform)...)
	}
	slices.Sort(engines)
	named := g.defs["studyfile.Place"].(schema)["properties"].(schema)["engines"].(schema)
	maps.Copy(named, oneOrMore(schema{"anyOf": []schema{{"enum": slices.DeleteFunc(slices.Compact(engines), func(name string) bool { return name == "" })}, {"type": "string", "pattern": `\|`}}}))
	all["study"] = g.file(reflect.TypeFor[studyfile.Spec](), "A study of Tare")
	return all
}

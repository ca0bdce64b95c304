package tare

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"
)

// outsideText is notebook.CodeText: a message of this code has no sentence.
const outsideText = "text"

// sentences are the arguments that the template of each code uses.
func sentences(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("desk/show/*/messages.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, file := range append(files, "desk/words/messages.tmpl") {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, set := parse.New(file), map[string]*parse.Tree{}
		tree.Mode = parse.SkipFuncCheck
		if _, err := tree.Parse(string(source), "", "", set); err != nil {
			t.Fatal(err)
		}
		for code, sentence := range set {
			if code == file {
				continue // the text between the definitions
			}
			if _, twice := all[code]; twice {
				t.Errorf("%s: %s has another sentence elsewhere", file, code)
			}
			names := map[string]bool{}
			fields(t, file+": "+code, sentence.Root, names)
			all[code] = slices.Sorted(maps.Keys(names))
		}
	}
	return all
}

// fields collects the arguments that a part of a template uses.
func fields(t *testing.T, where string, n parse.Node, names map[string]bool) {
	branch := func(b *parse.BranchNode) {
		fields(t, where, b.Pipe, names)
		fields(t, where, b.List, names)
		if b.ElseList != nil {
			fields(t, where, b.ElseList, names)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, e := range n.Nodes {
			fields(t, where, e, names)
		}
	case *parse.ActionNode:
		fields(t, where, n.Pipe, names)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			fields(t, where, c, names)
		}
	case *parse.CommandNode:
		for _, a := range n.Args {
			fields(t, where, a, names)
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.FieldNode:
		names[n.Ident[0]] = true
	case *parse.TemplateNode:
		t.Errorf("%s uses the template %s: make it an argument that is a message", where, n.Name)
	}
}

// literal is the value of a string literal.
func literal(e ast.Expr) (value string, ok bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(lit.Value)
	return value, err == nil
}

// Each message that a folder records has a sentence, and the sentence uses exactly the message's arguments.
func TestMessagesHaveSentences(t *testing.T) {
	known := sentences(t)
	said := map[string]bool{}
	eachCall(t, func(at token.Position, pkg, function string, args []ast.Expr) {
		switch {
		case function == "Is" && len(args) == 1:
			code, ok := literal(args[0])
			if _, has := known[code]; ok && !has && code != outsideText && pkg != "notebook" {
				t.Errorf("%s: no message has the code %q", at, code)
			}
		case function == "Say" && !strings.HasSuffix(at.Filename, "_test.go") && at.Filename != "notebook/message.go":
			code, ok := literal(args[0])
			names, has := known[code]
			if !ok || !has {
				t.Errorf("%s: a code with a sentence in messages.tmpl must stand here", at)
				return
			}
			said[code] = true
			var given []string
			for i := 1; i < len(args); i += 2 {
				name, ok := literal(args[i])
				if !ok {
					t.Errorf("%s: argument %d of %s: its name must stand here", at, i, code)
				}
				given = append(given, name)
			}
			if slices.Sort(given); !slices.Equal(given, names) {
				t.Errorf("%s: %s has the arguments %q, and its sentence uses %q", at, code, given, names)
			}
		}
	})
	for code := range known {
		if !said[code] {
			t.Errorf("no code says %s: its sentence can go", code)
		}
	}
}

// eachCall calls do for each call of a function or method in the module.
func eachCall(t *testing.T, do func(at token.Position, pkg, function string, args []ast.Expr)) {
	t.Helper()
	all := sources(t, ".")
	for _, file := range all {
		ast.Inspect(file.File, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				if of, is := f.X.(*ast.Ident); f.Sel.Name != "Say" || is && of.Name == "notebook" {
					do(file.at(call), file.Name.Name, f.Sel.Name, call.Args)
				}
			case *ast.Ident:
				if file.Name.Name == "notebook" {
					do(file.at(call), file.Name.Name, f.Name, call.Args)
				}
			}
			return true
		})
	}
	if len(all) < 300 {
		t.Errorf("only %d files were read", len(all))
	}
}

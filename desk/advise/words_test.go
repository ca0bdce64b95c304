package advise_test

import (
	"io"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/export"
	"tare/desk/terminal"
	"tare/desk/words"
)

func init() {
	advise.Named = words.Choice
	advise.Why = func(r advise.Ranking) string { return words.Ranking(&r) }
	advise.Said = words.Doubt
	advise.Text = func(w io.Writer, a *advise.Advice) error { return terminal.Advice(w, a, terminal.Screen{}) }
	advise.JSON = export.Advice
	advise.Apply = apply.Write
	advise.Expresses, advise.Formats, advise.Placeholder = apply.Expresses, apply.Formats, apply.Placeholder
}

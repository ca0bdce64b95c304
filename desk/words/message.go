package words

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"text/template"
	"time"

	"tare/desk/data"
	"tare/notebook"
)

//go:embed messages.tmpl
var coreMessages string

// messages are the sentences: templates that are named by code. A template's dot is the message's arguments. The templates are parsed when
// the first sentence is needed.
var messages struct {
	sources []string
	once    sync.Once
	parsed  *template.Template
}

// AddMessages adds the sentences for the codes of a kind of study, in the form of messages.tmpl. The kind's package calls it to initialise a
// variable.
func AddMessages(templates string) bool {
	messages.sources = append(messages.sources, templates)
	return true
}

// MessageTemplates are the sentences of all messages, by code.
func MessageTemplates() *template.Template {
	messages.once.Do(func() {
		t := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
			"message": message, "caption": Caption, "join": strings.Join, "seconds": seconds, "general": general,
			"digits":     func(n int, v any) (string, error) { return number("%.*g", n, v) },
			"decimal":    func(n int, v any) (string, error) { return number("%.*f", n, v) },
			"milli":      func(n int, v any) (string, error) { return number("%.*g", n, scaled(v, 1000)) },
			"percentage": func(n int, v any) (string, error) { return number("%.*g", n, scaled(v, 100)) },
			"percent":    func(n int, v any) (string, error) { return number("%.*f", n, scaled(v, 100)) },
			"gb":         func(v any) any { return scaled(v, 1.0/(1<<30)) },
			"gib":        func(n int, v any) (string, error) { return number("%.*f", n, scaled(v, 1.0/(1<<30))) },
			"mib":        func(n int, v any) (string, error) { return number("%.*f", n, scaled(v, 1.0/(1<<20))) },
		})
		for _, source := range append([]string{coreMessages}, messages.sources...) {
			template.Must(t.Parse(source))
		}
		messages.parsed = t
	})
	return messages.parsed
}

// Message is the sentence of a message: a clause without a capital or a full stop; "" for nil. An unknown code, and arguments that do not fit
// the sentence, are shown as they are: a newer Tare may have written the folder, or the folder may be damaged.
func Message(m *notebook.Message) string {
	switch {
	case m == nil:
		return ""
	case m.Is(notebook.CodeText):
		return m.Text()
	}
	sentence := MessageTemplates().Lookup(m.Code)
	if sentence == nil || m.Code == "" {
		return m.String()
	}
	args := make(map[string]any, len(m.Args))
	for name, v := range m.Args {
		if f, is := v.(float64); is && f == math.Trunc(f) && math.Abs(f) < 1e15 {
			v = int64(f) // prints its digits
		}
		args[name] = v
	}
	var b strings.Builder
	if err := sentence.Execute(&b, args); err != nil {
		return m.String()
	}
	return b.String()
}

// Error puts an error into English. If it wraps an error that carries a message, the message's sentence replaces that error's text.
func Error(err error) string {
	var says notebook.Carrier
	if !errors.As(err, &says) {
		return err.Error()
	}
	return strings.Replace(err.Error(), says.Error(), Message(says.Message()), 1)
}

// MessagesOf are the sentences of several messages.
func MessagesOf(all []*notebook.Message) []string {
	var texts []string
	for _, m := range all {
		texts = append(texts, Message(m))
	}
	return texts
}

// message puts an argument into English that is a text or a message.
func message(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case *notebook.Message:
		return Message(v), nil
	}
	return "", fmt.Errorf("%T is not a message", v)
}

// number prints an argument that is a number.
func number(format string, n int, v any) (string, error) {
	switch v := v.(type) {
	case int64:
		return fmt.Sprintf(format, n, float64(v)), nil
	case float64:
		return fmt.Sprintf(format, n, v), nil
	}
	return "", fmt.Errorf("%v is not a number", v)
}

// general prints a number with as few digits as identify it.
func general(v any) (string, error) {
	if n, is := v.(int64); is {
		v = float64(n)
	}
	if f, is := v.(float64); is {
		return fmt.Sprintf("%g", f), nil
	}
	return "", fmt.Errorf("%v is not a number", v)
}

// scaled multiplies a number, and leaves anything else as it is.
func scaled(v any, by float64) any {
	switch v := v.(type) {
	case int64:
		return float64(v) * by
	case float64:
		return v * by
	}
	return v
}

// seconds prints a duration in seconds as Go prints it: "1.5s".
func seconds(v any) (string, error) {
	switch v := v.(type) {
	case int64:
		return time.Duration(v * int64(time.Second)).String(), nil
	case float64:
		return time.Duration(math.Round(v * float64(time.Second))).String(), nil
	}
	return "", fmt.Errorf("%v is not a duration", v)
}

// Text puts a message that stands for all of its kind into English.
func Text(t data.Text) string {
	if t.Differs {
		return Message(t.First) + " (the numbers differ)"
	}
	return Message(t.First)
}

package page

import (
	"regexp"
	"strings"
	"testing"

	"tare/desk/words"
)

// The page uses every text. (If it used a text that does not exist, parsing it would fail.)
func TestEveryTextIsInThePage(t *testing.T) {
	all := regexp.MustCompile(`\{\{define "([^"]+)"\}\}`).FindAllStringSubmatch(words.Report, -1)
	if len(all) < 40 {
		t.Errorf("only %d texts were found", len(all))
	}
	for _, text := range all {
		if !strings.Contains(pageSource, `{{template "`+text[1]+`"`) {
			t.Errorf("the page has no text %q", text[1])
		}
	}
}

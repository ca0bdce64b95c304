package notebook

import (
	"encoding/json"
	"testing"
)

// A folder from before settings were recorded has none of them; a later one has each.
func TestSettingsOfHosts(t *testing.T) {
	var old, now Host
	if err := json.Unmarshal([]byte(`{"id": "h", "governor": "performance"}`), &old); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"id": "h", "settings": {"turbo": "off", "smt": "none", "frequency_driver": "none", "microcode": "0x1",
		"clock_source": "tsc", "transparent_huge_pages": "never", "kernel_command_line": "quiet"},
		"capabilities": [{"name": "docker", "answer": "supported", "versions": {"docker": "20.10", "runc": "1.1"}}]}`), &now); err != nil {
		t.Fatal(err)
	}
	for i, s := range old.SettingList() {
		if want := map[string]string{"governor": "performance"}[s.Name]; s.Value != want {
			t.Errorf("an old folder's %s is %q, want %q", s.Name, s.Value, want)
		}
		if of := now.SettingList()[i]; of.Value == "" || of.Name != s.Name {
			t.Errorf("%s is %q", of.Name, of.Value)
		}
	}
	if v := now.Versions(); len(v) != 2 || v["runc"] != "1.1" || len(old.Versions()) != 0 {
		t.Errorf("versions %v and %v", v, old.Versions())
	}
}

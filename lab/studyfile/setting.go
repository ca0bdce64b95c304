package studyfile

import (
	"fmt"
	"slices"
	"strings"

	"tare/lab/origin"
)

// checkSetting says what is wrong in what a command gets in addition to its image.
func (u Use) checkSetting() *problem {
	for _, of := range []struct {
		key string
		set bool
	}{{"env", len(u.Env) > 0}, {"prepare", len(u.Prepare) > 0}} {
		if of.set && !u.isOwn() {
			return wrong(fmt.Sprintf("%s: is for a command or an image of your own; a workload has its own folder", of.key), of.key)
		}
	}
	for i, kv := range u.Env {
		if _, _, err := origin.Variable(kv, nothingSet); err != nil || !strings.Contains(kv, "=") {
			return wrong(fmt.Sprintf("env: %.100q: must be KEY=VALUE, with no blank in KEY", kv), "env", i)
		}
	}
	if slices.ContainsFunc(u.Prepare, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		return wrong("prepare: a zero byte is not allowed", "prepare")
	}
	return nil
}

// nothingSet is an origin.Lookup of an empty environment.
func nothingSet(string) (string, bool) { return "", false }

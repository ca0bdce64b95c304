package studyfile

import (
	"fmt"
	"slices"
	"strings"

	"tare/lab/image"
	"tare/lab/origin"
)

// checkSetting checks what a command gets in addition to its image.
func (u Use) checkSetting() *problem {
	for _, of := range []struct {
		key string
		set bool
	}{{"env", len(u.Env) > 0}, {"dir", u.Dir != ""}, {"user", u.User != ""}, {"volumes", len(u.Volumes) > 0}, {"prepare", len(u.Prepare) > 0}} {
		if of.set && !u.isOwn() {
			return wrong(fmt.Sprintf("%s: is only for a command or an image of your own; a workload has its own folder", of.key), of.key)
		}
	}
	if len(u.Args) > 0 && (u.Image == "" || len(u.Command) > 0) {
		return wrong("args: is only for an image: without a command:", "args")
	}
	for i, kv := range u.Env {
		if _, _, err := origin.Variable(kv, nothingSet); err != nil || !strings.Contains(kv, "=") {
			return wrong(fmt.Sprintf("env: %.100q: must be KEY=VALUE, with no blank in KEY", kv), "env", i)
		}
	}
	if u.Dir != "" && (!strings.HasPrefix(u.Dir, "/") || strings.ContainsRune(u.Dir, 0)) {
		return wrong(fmt.Sprintf("dir: %.100q: must be an absolute path in the guest", u.Dir), "dir")
	}
	if strings.ContainsRune(u.User, 0) {
		return wrong("user: a zero byte is not allowed", "user")
	}
	if err := image.CheckVolumes(u.setting(".").Volumes); err != nil {
		return wrong("volumes: "+err.Error(), "volumes")
	}
	if slices.ContainsFunc(slices.Concat(u.Args, u.Prepare), func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		return wrong("prepare: and args: a zero byte is not allowed", "prepare")
	}
	if _, page := u.page(); u.Request != nil && (u.Port == 0 || !page) {
		return wrong("request: is only for a service whose load: is the path of a page", "request")
	}
	if u.Request != nil {
		if err := u.Request.check(); err != nil {
			return wrong("request: "+err.Error(), "request")
		}
	}
	return nil
}

// nothingSet is an origin.Lookup of an empty environment.
func nothingSet(string) (string, bool) { return "", false }

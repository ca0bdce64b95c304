//go:build linux

package engine

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"tare/lab/proc"
)

// Versions asks a program for its version, with --version; nil if it gives none.
func Versions(ctx context.Context, program string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out proc.Tail
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	if cmd.Run() != nil {
		return nil
	}
	version := parseVersion(out.String())
	if version == "" {
		return nil
	}
	return map[string]string{filepath.Base(program): version}
}

// parseVersion finds the version in the first line of a program's output: the word after "version", or else the only word; "" if
// there is neither.
func parseVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	version := ""
	for i, w := range words {
		if strings.EqualFold(w, "version") && i+1 < len(words) {
			version = words[i+1]
			break
		}
	}
	if version == "" && len(words) == 1 {
		version = words[0]
	}
	version = strings.Trim(version, ",;()")
	strange := func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) }
	if len(version) > 128 || !strings.ContainsAny(version, "0123456789") || strings.ContainsFunc(version, strange) {
		return ""
	}
	return version
}

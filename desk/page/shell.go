package page

import (
	"strings"

	"tare/desk/words"
)

// shellWord quotes a word for a POSIX shell where it needs it.
func shellWord(s string) string {
	s = words.Plain(s)
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+"
	if s != "" && strings.Trim(s, safe) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

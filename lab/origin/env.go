package origin

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"tare/yamlfile"
)

// Lookup is a function like os.LookupEnv.
type Lookup func(name string) (value string, set bool)

// maxVariables bounds the variables of one file.
const maxVariables = 4096

var variableOK = regexp.MustCompile(`^[^\s=\x00]+$`)

// Variable parses KEY=VALUE, or a KEY whose value is in the caller's environment. As in Docker, a KEY without a value there is not
// a variable: set is false.
func Variable(text string, lookup Lookup) (kv string, set bool, err error) {
	key, value, given := strings.Cut(text, "=")
	if !variableOK.MatchString(key) {
		return "", false, fmt.Errorf("%.100q: must be KEY=VALUE, with no blank in KEY", text)
	}
	if !given {
		if value, set = lookup(key); !set {
			return "", false, nil
		}
	}
	if strings.ContainsRune(value, 0) {
		return "", false, fmt.Errorf("%s: a zero byte is not allowed", key)
	}
	return key + "=" + value, true, nil
}

// ParseEnvFile parses a file of variables in Docker's format: KEY=VALUE or KEY on each line, with # before comments. A value is
// everything after the equals sign, including quotes. Errors begin with the number of the line.
func ParseEnvFile(text string, lookup Lookup) (env []string, err error) {
	return parseEnv(text, lookup, func(value string) (string, error) { return value, nil })
}

// ParseDotEnv parses a file of variables in Compose's format: like ParseEnvFile, with quotes around values.
func ParseDotEnv(text string, lookup Lookup) (env []string, err error) {
	return parseEnv(text, lookup, unquote)
}

func parseEnv(text string, lookup Lookup, read func(value string) (string, error)) (env []string, err error) {
	if len(text) > yamlfile.MaxBytes {
		return nil, fmt.Errorf("1: the file has %d bytes; at most %d are allowed", len(text), yamlfile.MaxBytes)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("1: the file is not UTF-8 text")
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		kv, set, err := Variable(line, lookup)
		if err == nil && set {
			key, value, _ := strings.Cut(kv, "=")
			value, err = read(value)
			kv = key + "=" + value
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%d: %w", i+1, err)
		case !set:
			continue
		}
		if env = append(env, kv); len(env) > maxVariables {
			return nil, fmt.Errorf("%d: more than %d variables", i+1, maxVariables)
		}
	}
	return env, nil
}

// unquote removes the quotes from a value in Compose's format, or the comment from one without quotes.
func unquote(value string) (string, error) {
	value = strings.TrimSpace(value)
	if value == "" || value[0] != '\'' && value[0] != '"' {
		if at := strings.Index(value, " #"); at >= 0 {
			value = strings.TrimRight(value[:at], " \t")
		}
		return value, nil
	}
	words, err := Words(value)
	switch {
	case err != nil:
		return "", err
	case len(words) > 1 && strings.HasPrefix(words[1], "#") || len(words) == 1:
		return words[0], nil
	}
	return "", fmt.Errorf("%.80q: must end after the quoted value", value)
}

// Merge keeps the last value of each variable, in the order of their first appearance.
func Merge(env []string) (all []string) {
	at := map[string]int{}
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		if i, ok := at[key]; ok {
			all[i] = kv
			continue
		}
		at[key] = len(all)
		all = append(all, kv)
	}
	return all
}

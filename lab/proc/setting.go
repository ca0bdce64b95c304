//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Setting reads a setting from a file of the kernel. In a list of words, the one in brackets is in force.
func Setting(path string) (string, error) {
	b, err := os.ReadFile(path)
	text := strings.TrimSpace(string(b))
	if _, after, ok := strings.Cut(text, "["); ok {
		if word, _, ok := strings.Cut(after, "]"); ok {
			text = word
		}
	}
	return text, err
}

// WriteSetting writes a value to an existing file.
func WriteSetting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// Set writes a value and checks that it is in force.
func Set(path, value string) error {
	if err := WriteSetting(path, value); err != nil {
		return err
	}
	is, err := Setting(path)
	if err == nil && is != value {
		err = fmt.Errorf("%s says %q after %q was written", path, is, value)
	}
	return err
}

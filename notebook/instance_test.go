package notebook

import (
	"fmt"
	"testing"
)

func TestParseInstance(t *testing.T) {
	for text, want := range map[string]Instance{
		"large":     {Name: "large", Cores: 2, Memory: 8 << 30},
		"16xLarge":  {Name: "16xlarge", Cores: 64, Memory: 256 << 30},
		"0.5/1GB":   {Name: "0.5/1GB", Cores: 0.5, Memory: 1 << 30},
		"3/512MB":   {Name: "3/512MB", Cores: 3, Memory: 512 << 20},
		"1/65536KB": {Name: "1/65536KB", Cores: 1, Memory: 64 << 20},
	} {
		if got, err := ParseInstance(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "huge", "1", "1/1", "0/1GB", "-1/1GB", "1/0GB", "1/1KB", "1/999999999TB", "1e3/1GB", "1/1GB ", "١/1GB", "99999/1GB"} {
		if got, err := ParseInstance(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

func FuzzParseInstance(f *testing.F) {
	for _, s := range []string{"large", "0.5/1GB", "1/1TB", "9999/999999999TB", "1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		i, err := ParseInstance(s)
		if err == nil && (i.Memory < 32<<20 || !(i.Cores > 0)) {
			t.Errorf("%q: %+v", s, i)
		}
	})
}

func ExampleParseInstance() {
	for _, text := range []string{"xlarge", "0.5/1GB", "0/1GB"} {
		i, err := ParseInstance(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%g cores, %d MiB\n", i.Cores, i.Memory>>20)
	}
	// Output:
	// 4 cores, 16384 MiB
	// 0.5 cores, 1024 MiB
	// instance "0/1GB": must have from 0.01 to 65536 CPUs
}

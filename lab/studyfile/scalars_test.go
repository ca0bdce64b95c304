package studyfile

import (
	"reflect"
	"strings"
	"testing"

	"tare/workloads"
)

// A list of one value can be written without its brackets, and a fixed number of rounds as a number.
func TestScalarAsListOfOne(t *testing.T) {
	const lists = `name: mine
workloads:
  - name: cpu
    params: {millions: [10]}
    instances: [1/1GB]
platforms:
  - platform: bm
  - platform: cn
    engines: [docker]
    provisioning: [pinned]
    networks: [host]
  - platform: vm
    machines: [cache=none]
    provisioning: [vanilla]
instances: [large]
host_cores: [2]
claims: [pinning]
design:
  rounds: {floor: 20, cap: 20}
`
	values := strings.NewReplacer("[", "", "]", "", "{floor: 20, cap: 20}", "20").Replace(lists)
	want, err := Parse("s.yaml", []byte(lists), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("s.yaml", []byte(values), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	got.Source = want.Source
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := got.Ask(workloads.FS, Choices{Accel: "auto"}); err != nil {
		t.Error(err)
	}
}

func TestMistakesInRounds(t *testing.T) {
	for rounds, want := range map[string]string{
		"many":               `s.yaml:12: rounds: "many": must be a number from 1 to 100000, or {floor: NUMBER, cap: NUMBER}`,
		"0":                  `s.yaml:12: rounds: "0": must be a number from 1 to 100000, or {floor: NUMBER, cap: NUMBER}`,
		"[3]":                `s.yaml:12: a list: must be {floor: …, cap: …, emulated: …}`,
		"{flor: 3}":          `s.yaml:12: unknown key flor: did you mean floor? The keys here are floor, cap, emulated`,
		"{floor: x}":         `s.yaml:12: "x": must be a whole number`,
		"{floor: 9, cap: 8}": `s.yaml:12: design: rounds: cap: 8: must be from 9 to 100000`,
	} {
		_, err := Parse("s.yaml", []byte(strings.Replace(small, "{floor: 2, cap: 3}", rounds, 1)), ".", known)
		if err == nil || err.Error() != want {
			t.Errorf("rounds: %s:\ngot  %v\nwant %s", rounds, err, want)
		}
	}
}

// Platforms may be named in users' words, in a file and in --only.
func TestPlatformsInUsersWords(t *testing.T) {
	const names = "name: mine\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}, {platform: cn}, {platform: vm}, {platform: vmcn}]\ninstances: [large]\n"
	words := strings.NewReplacer("bm", "host", "vmcn", "vm-container", "cn", "container").Replace(names)
	want, err := Parse("s.yaml", []byte(names), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("s.yaml", []byte(words), ".", known)
	if err != nil || !reflect.DeepEqual(got.Platforms, want.Platforms) {
		t.Errorf("%+v, %v; want %+v", got.Platforms, err, want.Platforms)
	}
	if o, err := ParseOnly("platform=container"); err != nil || o["platform"] != "cn" {
		t.Errorf("--only: %v, %v", o, err)
	}
}

package origin

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const composeText = `
x-common: &common
  restart: always
  environment: &env
    A: ${HOME}
    NUMBER: 8080
    HOME:
services:
  web:
    <<: *common
    image: "web:${TAG:-latest}"
    entrypoint: /app/web --name "two words"
    command: [serve, "$$HOME", "${EMPTY:-none}", "${EMPTY-none}"]
    env_file:
      - web.env
      - {path: none.env, required: false}
    volumes:
      - ./conf:/etc/web:ro
      - data:/data
      - {type: bind, source: /srv/pages, target: /pages}
      - {type: tmpfs, target: /run/x}
    ports: ["127.0.0.1:8080:80/tcp", "53:53/udp"]
    expose: [80]
    working_dir: /srv
    user: app:app
    deploy: {replicas: 3, resources: {limits: {cpus: "0.50", memory: 512M}}}
    depends_on: [db]
    secrets: [key]
  db:
    image: db
    command: db --fast
    cpuset: 0-1
    mem_limit: 2gb
    environment: ["B=1", "NONE"]
`

func composeOf(text string) Compose {
	return Compose{Text: []byte(text), Dir: "/compose", Lookup: host, Read: func(file string) ([]byte, error) {
		if filepath.Base(file) == "web.env" {
			return []byte("A=file\nC='of file'\n"), nil
		}
		return nil, errors.New("no such file")
	}}
}

func TestComposeService(t *testing.T) {
	o, err := composeOf(composeText).Service("web")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", []any{o.Image, o.Command, o.Args, o.Env, o.Volumes, o.Dir, o.User, o.Left})
	want := fmt.Sprintf("%q", []any{"web:latest", []string{"/app/web", "--name", "two words", "serve", "$HOME", "none", ""}, []string(nil),
		[]string{"A=/root", "C=of file", "HOME=/root", "NUMBER=8080"}, []Volume{{"/compose/conf", "/etc/web"}, {"/srv/pages", "/pages"}}, "/srv", "app:app",
		[]string{
			"not taken over: volume data:/data: it starts empty; --volume FOLDER:/data copies a folder",
			"not taken over: mount /run/x: of type tmpfs",
			"not taken over: port 53/udp: loads use TCP",
			"not taken over: depends_on", "not taken over: secrets",
		}})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Equal(o.Ports, []int{80}) || o.Cores != 0.5 || o.Memory != 512<<20 {
		t.Errorf("%+v", o)
	}
	if o, err = composeOf(composeText).Service("db"); err != nil || !slices.Equal(o.Args, []string{"db", "--fast"}) || o.Command != nil ||
		o.CPUSet != "0-1" || o.Memory != 2<<30 || !slices.Equal(o.Env, []string{"B=1"}) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWhatIsWrongInAComposeFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "has no service",
		"services: {api: {image: x}}":   `has no service "web"; it has api`,
		"services: {web: {build: .}}":   "service web: has no image:; Tare builds no images",
		"services: [web]":               "",
		"services: {web: {image: [x]}}": "",
		"services: {web: {image: x, command: \"a 'b\"}}":                   "has a ' without a second one",
		"services: {web: {image: \"${A:?no}\"}}":                           `"${A:?no}": ${VAR} and ${VAR:-default} are allowed, and $$ for a dollar`,
		"services: {web: {image: \"${A:-${B}}\"}}":                         "are allowed",
		"services: {web: {image: x, cpus: many}}":                          `cpus: "many": must be a number of CPUs`,
		"services: {web: {image: x, mem_limit: 1x}}":                       `memory: "1x": must be a size such as 512m or 2g`,
		"services: {web: {image: x, env_file: none.env}}":                  "env_file: no such file",
		"services: {web: {image: x, environment: ['A B=1']}}":              "environment: ",
		"services: {web: {image: x, volumes: [{type: bind, source: /a}]}}": "volumes: must be SOURCE:TARGET",
		"services: {web: {image: *none}}":                                  "",
		strings.Repeat("#", 2<<20):                                         "at most 1048576 are allowed",
	} {
		_, err := composeOf(text).Service("web")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: %v; want %s", text, err, want)
		}
	}
}

// Whatever a file holds, what is read of it can be given to a process, and only what it names is read.
func FuzzCompose(f *testing.F) {
	f.Add(composeText)
	f.Add("services: {web: {image: x, command: a 'b c', ports: [80, '1-2'], volumes: [/a]}}")
	f.Add("services: {web: &a {image: x, deploy: *a}}")
	f.Add("a: &a [1]\nservices: {web: {image: $$, environment: {A: 1.10, B: }}}")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := composeOf(text).Service("web")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: %q", text, err)
			}
			return
		}
		for _, kv := range o.Env {
			if strings.IndexByte(kv, '=') <= 0 {
				t.Errorf("%q gives %q", text, kv)
			}
		}
		for _, p := range o.Ports {
			if p < 1 || p > 65535 {
				t.Errorf("%q gives port %d", text, p)
			}
		}
		for _, v := range o.Volumes {
			if !filepath.IsAbs(v.Host) {
				t.Errorf("%q gives %q", text, v)
			}
		}
	})
}

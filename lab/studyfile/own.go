package studyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"strconv"
	"strings"

	"tare/lab/workload"
	"tare/notebook"
)

// HTTP is the workload that asks a user's own service over HTTP.
const HTTP = "http"

// isOwn reports whether the use is a user's own command and names no workload folder.
func (u Use) isOwn() bool { return u.Image != "" || len(u.Command) > 0 }

// service is the workload of a user's own service.
func (u Use) service(shipped fs.FS) (*workload.Workload, error) {
	w := &workload.Workload{Metric: workload.Metric{Metric: notebook.Metric{Name: "response time", Unit: "s"}, From: "mean"}}
	if page, ok := strings.CutPrefix(strings.Join(u.Ask, ""), "/"); ok && len(u.Ask) == 1 {
		var err error
		if w, err = workload.Find(shipped, HTTP, "."); err != nil {
			return nil, err
		}
		if w.Params, err = w.At(map[string]string{"path": "/" + page}); err != nil {
			return nil, err
		}
	} else {
		once := workload.Expand(u.Ask, map[string]string{"rate": "1", "seconds": "1", "requests": "1"})
		w.Load = &workload.Load{Ready: once, Command: once, Open: u.Ask}
	}
	w.Syncs = "" // what the service writes is the user's concern
	w.Name, w.Title, w.Paper = u.Name, "service on port "+strconv.Itoa(u.Port), ""
	w.Image = workload.Image{Reference: u.Image}
	w.Service = &workload.Service{Command: u.Command, Port: u.Port}
	return w, nil
}

// own is the workload of a user's own command.
func (u Use) own() *workload.Workload {
	w := &workload.Workload{
		Name: u.Name, Title: strings.Join(u.Command, " "), Command: u.Command,
		Image:  workload.Image{Reference: u.Image},
		Metric: workload.Metric{Metric: notebook.Metric{Name: "execution time", Unit: "s"}},
	}
	if len(u.Metrics) > 0 {
		w.Metric, w.Also = u.Metrics[0], u.Metrics[1:]
	}
	if u.Image == "" {
		w.Image.Suite = plainSuite
	}
	if u.Input != "" {
		w.Input = &workload.Input{Name: u.Input}
	}
	return w
}

// brief shortens a command line. Different command lines stay different.
func brief(argv []string) string {
	text := strings.Join(argv, " ")
	const most = 40
	if r := []rune(text); len(r) > most || len(argv) > 1 && strings.ContainsAny(strings.Join(argv, ""), " ") {
		return string(r[:min(len(r), most)]) + "… " + hash(argv)[len("sha256:"):][:6]
	}
	return text
}

// plainSuite is the Debian release of the root for a command that names no image.
const plainSuite = "trixie"

// hash covers everything that decides the meaning of the trials; a folder is continued only with the same hash.
func hash(parts ...any) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, p := range parts {
		if err := e.Encode(p); err != nil { // plain data: cannot fail
			panic(err)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

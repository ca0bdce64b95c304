package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tare/notebook/durable"
)

// Fleet is a study that many nodes measure, each into a results folder of its own. A node is a machine as its scheduler names it; two nodes may
// be one host. A fleet's folder holds:
//
//	fleet.json               the fleet as asked for (Fleet).
//	study.yaml               the study's file, unless it ships with Tare.
//	tare                     the program that the nodes run.
//	logs/NODE.txt            what the task of a node printed.
//	nodes/NODE/task.json     what the task of a node does (FleetTask); written by the task.
//	nodes/NODE/results       the node's results folder.
type Fleet struct {
	Version int       `json:"version"`
	Tare    string    `json:"tare"`
	ID      string    `json:"id"`             // letters, digits and hyphens; the scheduler knows its tasks by it
	Study   string    `json:"study"`          // name
	File    string    `json:"file,omitempty"` // the study's file, in the fleet's folder; empty: it ships with Tare
	Created time.Time `json:"created"`
	By      string    `json:"by"`             // what starts the tasks: slurm, kubernetes or ssh
	Run     []string  `json:"run,omitempty"`  // flags of `tare run` that each task gets
	With    []string  `json:"with,omitempty"` // options that the scheduler gets with each task
	Nodes   []string  `json:"nodes"`
}

// FleetTask is the state that the task of a node last reported. A task that was killed leaves its last report.
type FleetTask struct {
	State string    `json:"state"` // one of the constants below
	Since time.Time `json:"since"`
	Job   string    `json:"job,omitempty"`  // the scheduler's name of it
	Said  string    `json:"said,omitempty"` // failed: the error; done: what went wrong nevertheless
}

// States of a FleetTask.
const (
	TaskWaits    = "waiting"   // another Tare measures on the host
	TaskMeasures = "measuring" // or prepares to
	TaskDone     = "done"      // its run ended as the study or a flag says
	TaskStopped  = "stopped"   // by an interrupt
	TaskFailed   = "failed"
)

// FleetVersion is the version of fleet.json. Readers refuse a newer one.
const FleetVersion = 1

// MostNodes is how many nodes a fleet may have, and how many results folders are read together.
const MostNodes = 200_000

const (
	FleetFile   = "fleet.json"
	taskFile    = "task.json"
	nodesFolder = "nodes"
	nodeResults = "results"
	maxTask     = 1 << 16 // bytes of task.json
)

var fleetID = regexp.MustCompile(`^tare-[a-z0-9]{1,16}$`)

var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

// CheckNode says why a node's name cannot be that of a folder.
func CheckNode(name string) error {
	if !nodeName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a node: at most 253 letters, digits, dots, hyphens and underscores are allowed, and a letter or digit first", name)
	}
	return nil
}

// NodeDir is the folder of a node in a fleet's folder.
func NodeDir(dir, node string) string { return filepath.Join(dir, nodesFolder, node) }

// NodeResults is the results folder of a node.
func NodeResults(dir, node string) string { return filepath.Join(NodeDir(dir, node), nodeResults) }

// NodeOf is the node whose results folder, in the folder of a fleet, has this path; empty: it is not such a path.
func NodeOf(results string) string {
	at := filepath.Dir(filepath.Clean(results))
	if filepath.Base(results) != nodeResults || filepath.Base(filepath.Dir(at)) != nodesFolder {
		return ""
	}
	return filepath.Base(at)
}

// ReadFleet reads a fleet's folder. A folder without fleet.json gives an error with fs.ErrNotExist in its chain.
func ReadFleet(dir string) (*Fleet, error) {
	path := filepath.Join(dir, FleetFile)
	data, err := readWhole(path)
	if err != nil {
		return nil, err
	}
	var f Fleet
	if err := unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	if f.Version != FleetVersion {
		return nil, fmt.Errorf(`%s: "version" is %d; this Tare reads %d: use the Tare that made the fleet, or a newer one`, path, f.Version, FleetVersion)
	}
	if len(f.Nodes) > MostNodes {
		return nil, fmt.Errorf(`%s: it has %d "nodes"; a fleet may have at most %d`, path, len(f.Nodes), MostNodes)
	}
	if len(f.Nodes) == 0 {
		return nil, fmt.Errorf(`%s: it has no "nodes"; a fleet has at least one`, path)
	}
	seen := make(map[string]bool, len(f.Nodes))
	for _, n := range f.Nodes {
		if err := CheckNode(n); err != nil {
			return nil, fmt.Errorf(`%s: "nodes": %w`, path, err)
		}
		if seen[n] {
			return nil, fmt.Errorf(`%s: "nodes": %s is listed twice`, path, n)
		}
		seen[n] = true
	}
	if f.File != "" && !filepath.IsLocal(f.File) {
		return nil, fmt.Errorf(`%s: "file" is %q; it must be a file in the folder`, path, f.File)
	}
	if !fleetID.MatchString(f.ID) {
		return nil, fmt.Errorf(`%s: "id" is %q; it must be tare- and at most 16 letters and digits`, path, f.ID)
	}
	return &f, nil
}

// Write puts fleet.json into the fleet's folder.
func (f *Fleet) Write(dir string) error {
	f.Version = FleetVersion
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, FleetFile), append(data, '\n'), 0o644)
}

// ReadTask reads what a node's task reported last; false: it has reported nothing yet.
func ReadTask(dir, node string) (t FleetTask, said bool, err error) {
	path := filepath.Join(NodeDir(dir, node), taskFile)
	data, err := readWhole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err == nil && len(data) > maxTask {
		err = fmt.Errorf("%s is larger than %d bytes, which Tare never writes", path, maxTask)
	}
	if err != nil {
		return t, false, err
	}
	if err := unmarshal(data, &t); err != nil {
		return t, false, fmt.Errorf("%s%w", path, err)
	}
	if !slices.Contains([]string{TaskWaits, TaskMeasures, TaskDone, TaskStopped, TaskFailed}, t.State) {
		return t, false, fmt.Errorf(`%s: "state" is %q, which no task has`, path, t.State)
	}
	return t, true, nil
}

// WriteTask makes the node's folder if it is missing, and puts task.json into it.
func WriteTask(dir, node string, t FleetTask) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	at := NodeDir(dir, node)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(at, taskFile), append(data, '\n'), 0o644)
}

// Folders are the results folders in a folder of many: those of a fleet's nodes, or those that lie in the folder itself. They are sorted by name.
// It returns none if dir is a results folder itself, or holds none.
func Folders(dir string) (all []string, err error) {
	if Exists(dir) {
		return nil, nil
	}
	at, below := filepath.Join(dir, nodesFolder), nodeResults
	names, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrNotExist) {
		at, below = dir, ""
		names, err = os.ReadDir(at)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		if folder := filepath.Join(at, e.Name(), below); e.IsDir() && !strings.HasPrefix(e.Name(), ".") && Exists(folder) {
			all = append(all, folder)
		}
	}
	if len(all) > MostNodes {
		return nil, fmt.Errorf("%s holds %d results folders; at most %d are read together", dir, len(all), MostNodes)
	}
	return all, nil
}

//go:build linux

package docker

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"

	"tare/lab/dockerapi"
)

// maxAPI is the newest version of Docker Engine's API that this package was written for. It speaks an older version to an older
// engine. Everything used here is in versions from 1.41 (Engine 20.10) on.
const (
	maxAPI = "1.47"
	minAPI = "1.41"
)

// maxAnswer bounds an engine's answer, in bytes.
const maxAnswer = 4 << 20

// Time limits of an engine, whatever its caller's context says: for an answer, and for importing or pulling an image.
const (
	answerTime = time.Minute
	importTime = 15 * time.Minute
)

// createImage is the request to import or pull an image.
const createImage = "/images/create"

// daemon speaks the part of Docker Engine's API that Tare needs.
type daemon struct {
	api  string // the version of its API that is spoken
	host string // "unix:///…"
	http *http.Client
	base string // "http://docker/v1.41"
}

// dial connects to the engine at an address, or by default at the usual address, and agrees on a version. The error is one line
// that says what to do.
func dial(ctx context.Context, asked string) (*daemon, error) {
	dockerHost, socket, err := dockerapi.Host(asked)
	if err != nil {
		return nil, err
	}
	e := &daemon{host: dockerHost, base: "http://docker", http: &http.Client{Transport: dockerapi.Transport(socket)}}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+"/_ping", nil)
	if err != nil {
		return nil, err
	}
	res, err := e.http.Do(req)
	if err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		do := "start it (systemctl start docker, or dockerd as root), or name another one with DOCKER_HOST"
		if asked != "" {
			do = "start the engine of this address again (DOCKER_HOST changes nothing here)"
		}
		return nil, &silentError{host: dockerHost, cause: unwrapURL(err), do: do}
	}
	defer res.Body.Close()
	version := res.Header.Get("Api-Version")
	switch {
	case res.StatusCode != http.StatusOK || version == "":
		return nil, fmt.Errorf("the program that listens at %s is not a Docker Engine: it answered %s to a ping", dockerHost, res.Status)
	case older(version, minAPI):
		return nil, fmt.Errorf("the Docker Engine at %s speaks API %s; must be %s (Engine 20.10) or newer; upgrade it", dockerHost, version, minAPI)
	case older(maxAPI, version):
		version = maxAPI
	}
	e.api = version
	e.base += "/v" + version
	return e, nil
}

// silentError says that no engine answers at an address, and what to do.
type silentError struct {
	host  string
	cause error
	do    string
}

func (e *silentError) Error() string { return e.why() + "; " + e.do }
func (e *silentError) Unwrap() error { return e.cause }

// why is the error without what to do.
func (e *silentError) why() string {
	return fmt.Sprintf("the Docker Engine does not answer at %s: %v", e.host, e.cause)
}

// patience is how long an engine may refuse connections in a run before the run fails, because an upgrade restarts it. pollTime is
// the interval between attempts.
const (
	patience = time.Minute
	pollTime = 100 * time.Millisecond
)

// dialPatiently is dial for an engine that has answered before. It tries again while the engine's socket refuses or is missing.
func dialPatiently(ctx context.Context, dockerHost string) (*daemon, error) {
	over := time.After(patience)
	for {
		e, err := dial(ctx, dockerHost)
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
			return e, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-over:
			return nil, fmt.Errorf("for %v, %w", patience, err)
		case <-time.After(pollTime):
		}
	}
}

// older reports whether version a comes before b. A text that is not a version counts as the oldest.
func older(a, b string) bool { return semver.Compare("v"+a, "v"+b) < 0 }

// unwrapURL removes the made-up address that net/http puts before an error.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// apiError is the engine's own refusal.
type apiError struct {
	status int
	said   string
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.said, e.status) }

// status is the code of the engine's refusal, or 0.
func status(err error) int {
	if a, ok := errors.AsType[*apiError](err); ok {
		return a.status
	}
	return 0
}

// do makes a request. body may be nil, an io.Reader (a tar stream) or anything that JSON can encode. into, if not nil, gets the
// answer's JSON, or as a *bytes.Buffer the answer itself.
func (e *daemon) do(ctx context.Context, method, path string, query url.Values, body, into any) error {
	var r io.Reader
	kind, limit := "", answerTime
	if path == createImage {
		limit = importTime
	}
	switch b := body.(type) {
	case nil:
	case io.Reader:
		r, kind = b, "application/x-tar"
	default:
		j, err := json.Marshal(b)
		if err != nil {
			return err
		}
		r, kind = bytes.NewReader(j), "application/json"
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, e.base+path+"?"+query.Encode(), r)
	if err != nil {
		return err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	what := "Docker Engine: " + method + " " + path
	res, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", what, unwrapURL(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("%s: reading the answer: %w", what, err)
	}
	if len(answer) > maxAnswer {
		return fmt.Errorf("%s: the answer has more than %d bytes", what, maxAnswer)
	}
	if res.StatusCode >= 400 {
		var m struct{ Message string }
		if json.Unmarshal(answer, &m) != nil || m.Message == "" {
			m.Message = strings.TrimSpace(string(answer[:min(len(answer), 200)]))
		}
		return fmt.Errorf("%s: %w", what, &apiError{res.StatusCode, m.Message})
	}
	switch i := into.(type) {
	case nil:
		return nil
	case *bytes.Buffer:
		_, err := i.Write(answer)
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s: the Docker Engine's answer is not the JSON of this request: %w", what, err)
	}
	return nil
}

// log is the end of the container's output. It is bounded, and empty where it cannot be read.
func (e *daemon) log(ctx context.Context, name string) string {
	var b bytes.Buffer
	q := url.Values{"stdout": {"1"}, "stderr": {"1"}, "tail": {"20"}}
	if err := e.do(ctx, http.MethodGet, "/containers/"+name+"/logs", q, nil, &b); err != nil {
		return "(its log: " + err.Error() + ")"
	}
	return strings.TrimSpace(plain(b.Bytes()))
}

// plain removes the frame headers of a container's output: a byte for the stream, three zeros, four bytes for the length.
func plain(b []byte) string {
	var s strings.Builder
	for len(b) >= 8 {
		n := min(int(binary.BigEndian.Uint32(b[4:8])), len(b)-8)
		s.Write(b[8 : 8+n])
		b = b[8+n:]
	}
	return strings.ToValidUTF8(s.String(), "?")
}

// The parts of the engine's objects that Tare reads.
type (
	containerState struct {
		ID    string `json:"Id"`
		State struct {
			Status    string
			ExitCode  int
			OOMKilled bool
			Error     string
		}
		Config struct{ Labels map[string]string }
	}
	imageState struct {
		Config      struct{ Labels map[string]string }
		GraphDriver struct {
			Name string
			Data map[string]string
		}
	}
	mount struct {
		Type, Source, Target string
		ReadOnly             bool
		BindOptions          struct{ Propagation string }
	}
	logConfig struct {
		Type   string
		Config map[string]string
	}
	portBinding struct {
		HostIp, HostPort string
	}
	hostConfig struct {
		Mounts       []mount
		NetworkMode  string
		PortBindings map[string][]portBinding `json:",omitempty"` // by "PORT/tcp" in the container
		CpuPeriod    int64                    `json:",omitempty"` // microseconds
		CpuQuota     int64                    `json:",omitempty"`
		CpusetCpus   string                   `json:",omitempty"`
		Memory       int64                    // bytes
		MemorySwap   int64                    // bytes, including Memory
		PidsLimit    int64
		ShmSize      int64
		LogConfig    logConfig
		Devices      []deviceMapping `json:",omitempty"`
		// DeviceRequests are devices that the engine finds itself, by name.
		DeviceRequests []deviceRequest `json:",omitempty"`
	}
	deviceRequest struct {
		Driver    string
		DeviceIDs []string
	}
	engineInfo struct {
		DockerRootDir string
		CDISpecDirs   []string // folders with descriptions of devices; empty where it does not know CDI
	}
	deviceMapping   struct{ PathOnHost, PathInContainer, CgroupPermissions string }
	containerConfig struct {
		Image        string
		Entrypoint   []string
		Cmd          []string
		Env          []string
		User         string
		WorkingDir   string
		Hostname     string
		Labels       map[string]string
		ExposedPorts map[string]struct{} `json:",omitempty"`
		HostConfig   hostConfig
	}
)

package studyfile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tare/lab/workload"
	"tare/yamlfile"
)

// Request is a request over HTTP. The digest of the work's files covers it.
type Request struct {
	Method   string `yaml:"method,omitempty"`    // default GET, and POST with a body
	Headers  Values `yaml:"headers,omitempty"`   // as "Name: value"
	Body     string `yaml:"body,omitempty"`      // text of the body
	BodyFile string `yaml:"body_file,omitempty"` // a file with the body, relative to the study file
}

// Methods are the methods that a request can have.
var Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Allowed implements yamlfile.Limited.
func (Request) Allowed() map[string][]string { return map[string][]string{"method": Methods} }

// mostHeaders bounds the headers of a request.
const mostHeaders = 100

var (
	headerOK  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$") // a token of RFC 9110
	setByLoad = []string{"Content-Length", "Transfer-Encoding", "Connection"}
)

// header splits a header into its name and its value, and checks both.
func header(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	switch {
	case !ok || !headerOK.MatchString(name):
		return "", "", fmt.Errorf("%.100q: must be 'Name: value'", text)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "", "", fmt.Errorf("%s: the value must be one line of text", name)
	case slices.ContainsFunc(setByLoad, func(own string) bool { return strings.EqualFold(name, own) }):
		return "", "", fmt.Errorf("%s: the load sets this header itself: leave it out", name)
	}
	return name, value, nil
}

// method is the request's method. A nil request is a GET.
func (r *Request) method() string {
	switch {
	case r == nil:
		return "GET"
	case r.Method == "" && r.Body+r.BodyFile != "":
		return "POST"
	}
	return cmp.Or(r.Method, "GET")
}

// check returns what is wrong in the request.
func (r *Request) check() error {
	if !slices.Contains(Methods, r.method()) {
		return fmt.Errorf("method: %.40q: must be one of %s", r.Method, strings.Join(Methods, ", "))
	}
	if r.Body != "" && r.BodyFile != "" {
		return fmt.Errorf("body and body_file: only one of them is allowed")
	}
	if len(r.Body) > yamlfile.MaxBytes {
		return fmt.Errorf("body: %d bytes; at most %d are allowed", len(r.Body), yamlfile.MaxBytes)
	}
	if len(r.Headers) > mostHeaders {
		return fmt.Errorf("headers: %d of them; at most %d are allowed", len(r.Headers), mostHeaders)
	}
	var names []string
	for _, text := range r.Headers {
		name, _, err := header(text)
		if err == nil && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			err = fmt.Errorf("%s is named twice: name it once", name)
		}
		if err != nil {
			return fmt.Errorf("headers: %w", err)
		}
		names = append(names, name)
	}
	return nil
}

// bodiless are the methods whose requests say nothing of a body where they have none (RFC 9110, section 8.6).
var bodiless = []string{"GET", "HEAD", "DELETE", "OPTIONS"}

// putInto puts the request into the workload that sends it, in the form that its load reads: the method, a line feed, and what follows
// a request's first line.
func (r *Request) putInto(w *workload.Workload, base string) error {
	if r == nil {
		return nil
	}
	body := []byte(r.Body)
	if file := r.BodyFile; file != "" {
		if !filepath.IsAbs(file) {
			file = filepath.Join(base, file)
		}
		var err error
		if body, err = yamlfile.Read(file); err != nil {
			return fmt.Errorf("body of the request: %w", err)
		}
	}
	var headers []byte
	ownAgent := false
	for _, h := range r.Headers {
		name, value, err := header(h)
		if err != nil {
			return err
		}
		ownAgent = ownAgent || strings.EqualFold(name, "User-Agent")
		headers = fmt.Appendf(headers, "%s: %s\r\n", name, value)
	}
	text := []byte(r.method() + "\n")
	if !ownAgent {
		text = append(text, "User-Agent: tare\r\n"...)
	}
	text = append(text, headers...)
	if len(body) > 0 || !slices.Contains(bodiless, r.method()) {
		text = fmt.Appendf(text, "Content-Length: %d\r\n", len(body))
	}
	w.Replace("request", slices.Concat(text, []byte("\r\n"), body))
	return nil
}

// brief is what comes before the page in a treatment's name: nothing if there is no request, which means a plain GET.
func (r *Request) brief() []string {
	if r == nil {
		return nil
	}
	text := r.method()
	if len(r.Headers) > 0 || r.Body+r.BodyFile != "" {
		text += "#" + hash(r)[len("sha256:"):][:6]
	}
	return []string{text}
}

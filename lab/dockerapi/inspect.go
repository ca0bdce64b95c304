package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// MaxAnswer bounds one answer of the engine, in bytes.
const MaxAnswer = 16 << 20

// answerTime bounds the wait for an answer to a simple question.
const answerTime = time.Minute

var containerOK = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}$`)

// Container returns the engine's description of a container, running or stopped, as JSON.
func Container(ctx context.Context, name string) ([]byte, error) {
	if !containerOK.MatchString(name) {
		return nil, fmt.Errorf("%.100q is not the name of a container: letters, digits, dots, hyphens and underscores are allowed", name)
	}
	text, err := ask(ctx, "/containers/"+name+"/json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no container %s; `docker ps -a` names those that exist", name)
	}
	return text, err
}

// Image returns the engine's description of an image, as JSON; an error with fs.ErrNotExist where it has no such image.
func Image(ctx context.Context, ref string) ([]byte, error) {
	return ask(ctx, "/images/"+ref+"/json")
}

func ask(ctx context.Context, path string) ([]byte, error) {
	address, socket, err := Host("")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	u := url.URL{Scheme: "http", Host: "docker", Path: path}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: Transport(socket)}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("the Docker Engine at %s does not answer: %w; start it, or name another with DOCKER_HOST", address, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the Docker Engine at %s: %w", address, err)
	case resp.StatusCode == http.StatusNotFound:
		return nil, fs.ErrNotExist
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the Docker Engine at %s answers %s: %.300q", address, resp.Status, text)
	case len(text) > MaxAnswer:
		return nil, fmt.Errorf("the Docker Engine at %s: its answer has more than %d bytes", address, MaxAnswer)
	}
	return text, nil
}

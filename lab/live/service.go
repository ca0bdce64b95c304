//go:build linux

package live

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Labels by which Compose knows its containers.
const (
	composeService = "com.docker.compose.service"
	composeFiles   = "com.docker.compose.project.config_files" // absolute paths, with commas between them
)

// FindService finds the container that runs a service of a Compose file. It fails if none or several do.
func FindService(ctx context.Context, file, service string) (*Target, error) {
	name, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(name); err != nil {
		return nil, fmt.Errorf("--compose: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	text, err := askDocker(ctx)
	if err != nil {
		return nil, fmt.Errorf("--compose: cannot list the containers of Docker Engine: %w", err)
	}
	ids, services := composed(text, name, service)
	switch {
	case len(ids) == 1:
		return Find(ctx, ids[0])
	case len(ids) > 1:
		for i, id := range ids {
			ids[i] = short(id)
		}
		return nil, fmt.Errorf("--service %s: %d containers run it (%s); must be one; observe one by its ID", service, len(ids), strings.Join(ids, ", "))
	case len(services) == 0:
		return nil, fmt.Errorf("--compose %s: no running container belongs to this file; `docker compose -f %[1]s up -d` starts them", file)
	}
	return nil, fmt.Errorf("--service %s: is not running; must be one of %s", service, strings.Join(services, ", "))
}

// composed lists the containers of a service of a Compose file, and all services of the file that have containers, from Docker Engine's list.
// It ignores a list of another form.
func composed(list []byte, file, service string) (ids, services []string) {
	var containers []struct {
		ID     string
		Labels map[string]string
	}
	if len(list) > mostListed || json.Unmarshal(list, &containers) != nil {
		return nil, nil
	}
	for _, c := range containers {
		if !slices.Contains(strings.Split(c.Labels[composeFiles], ","), file) {
			continue
		}
		of := c.Labels[composeService]
		if of == service {
			ids = append(ids, c.ID)
		}
		if !slices.Contains(services, of) {
			services = append(services, of)
		}
	}
	slices.Sort(services)
	return ids, services
}

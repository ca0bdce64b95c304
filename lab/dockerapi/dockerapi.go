// Package dockerapi is how Docker Engine is reached: over HTTP on a Unix socket of this host. The engine's own client would
// bring 60 packages more, tracing libraries among them, for the few requests that are made of it.
package dockerapi

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// DefaultHost is where Docker Engine listens unless it is told otherwise.
const DefaultHost = "unix:///var/run/docker.sock"

// dialTime bounds the wait for the engine to take a connection.
const dialTime = 5 * time.Second

// Host is the engine's address: host, or where that is empty DOCKER_HOST, or else DefaultHost; and its socket's path. An
// address that is not a Unix socket's is an error.
func Host(host string) (address, socket string, err error) {
	address = cmp.Or(host, os.Getenv("DOCKER_HOST"), DefaultHost)
	socket, ok := strings.CutPrefix(address, "unix://")
	if !ok {
		return address, "", fmt.Errorf("the Docker Engine at %s: want unix:///PATH, an engine on this host (see DOCKER_HOST)", address)
	}
	return address, socket, nil
}

// Transport reaches the engine behind the socket, whatever host a request names. Nothing of a connection outlives its
// request.
func Transport(socket string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
}

// Package dockerapi talks to Docker Engine over HTTP on a Unix socket of this host. The engine's own client would add 60 packages,
// tracing libraries among them, for a few requests.
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

// DefaultHost is where Docker Engine listens by default.
const DefaultHost = "unix:///var/run/docker.sock"

// dialTime bounds the wait for the engine to accept a connection.
const dialTime = 5 * time.Second

// Host returns the engine's address and the path of its socket. The address is host, or else DOCKER_HOST, or else DefaultHost. It
// must be a Unix socket's.
func Host(host string) (address, socket string, err error) {
	address = cmp.Or(host, os.Getenv("DOCKER_HOST"), DefaultHost)
	socket, ok := strings.CutPrefix(address, "unix://")
	if !ok {
		return address, "", fmt.Errorf("the Docker Engine at %s: must be an engine on this host, unix:///PATH (see DOCKER_HOST)", address)
	}
	return address, socket, nil
}

// Transport reaches the engine behind the socket, whatever host a request names. It closes each connection after its request.
func Transport(socket string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives:  true,
		DisableCompression: true,
	}
}

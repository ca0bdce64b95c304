// Command tare-stargz is a daemon of the stargz-snapshotter, which pulls eStargz images lazily for containerd. It serves the
// snapshotter's service on a socket, because Go's module proxy has no version of the snapshotter's own command. It has its own Go module, so
// Tare contains no part of it. The script build in this folder builds it.
//
// It forgets an unused layer one second after it was resolved; the default is two minutes. Otherwise the next pull of the same image would find what the
// last pull fetched.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	snapshots "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/v2/contrib/snapshotservice"
	"github.com/containerd/stargz-snapshotter/service"
	"google.golang.org/grpc"
)

func main() {
	address := flag.String("address", "/run/tare-stargz.sock", "the socket")
	root := flag.String("root", "/var/lib/tare-stargz", "the folder of its files")
	flag.Parse()
	if err := serve(*address, *root); err != nil {
		fmt.Fprintf(os.Stderr, "tare-stargz: %v\n", err)
		os.Exit(1)
	}
}

// serve serves until SIGINT or SIGTERM.
func serve(address, root string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var config service.Config
	config.ResolveResultEntryTTLSec, config.NoPrometheus = 1, true
	snapshotter, err := service.NewStargzSnapshotterService(ctx, root, &config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snapshotter.Close()) }()
	socket, err := net.Listen("unix", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	snapshots.RegisterSnapshotsServer(server, snapshotservice.FromSnapshotter(snapshotter))
	context.AfterFunc(ctx, server.Stop)
	return server.Serve(socket)
}

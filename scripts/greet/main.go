//go:build linux

// Command greet starts a ruler, for example one of another architecture under emulation, and waits for its answer: greet PROGRAM ARG….
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tare/lab/ruler"
)

func main() {
	if err := greet(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "greet:", err)
		os.Exit(1)
	}
}

func greet(argv []string) error {
	if len(argv) == 0 {
		return errors.New("usage: greet PROGRAM ARG…")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "tare-greet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "ruler.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer listener.Close()
	program := exec.CommandContext(ctx, argv[0], append(argv[1:], "--connect", socket)...)
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		return err
	}
	defer func() {
		cancel() // kills it
		program.Wait()
	}()
	if err := listener.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	stream, err := listener.Accept()
	if err != nil {
		return err
	}
	client, err := ruler.Connect(ctx, stream.(*net.UnixConn))
	if err != nil {
		return err
	}
	_, err = client.Ping(ctx)
	return errors.Join(err, client.Close())
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/desk/terminal"
	"tare/lab/live"
	"tare/lab/memory"
	"tare/notebook"
)

func memoryCommand() *cobra.Command {
	var m memorying
	c := &cobra.Command{
		Use:   "memory [PID…|CONTAINER…|VM…]",
		Short: "Show the physical memory used by running containers, VMs and processes",
		Long: `Accounts for the physical memory of running containers (by name or ID), VMs (by the name of the QEMU guest) and processes (by
PID), no matter who started them. Without a name it lists all containers and VMs, and the rest of the host. RSS, PSS and USS
are the kernel's values. "own" is memory that no process outside maps. It becomes free when the container, VM or process ends.
With names, the command also lists kinds of pages, sharing partners, duplicates, and ways to reclaim memory. It reads
processes and does not change them.`,
		Example: "  sudo tare memory\n  sudo tare memory web 4711\n  sudo tare memory web --watch\n  sudo tare memory --format json --contents=false",
		RunE:    func(c *cobra.Command, args []string) error { return m.run(c.Context(), args) },
	}
	tableOrJSON(c, &m.format)
	f := c.Flags()
	f.BoolVar(&m.contents, "contents", true, "read all pages of the host to find duplicates; --contents=false is faster")
	f.StringVar(&m.most, "max-memory", fmt.Sprintf("%dMB", memory.DefaultMost>>20), "memory for the list of pages, 40 bytes each; the rest goes to a file in TMPDIR")
	f.DurationVar(&m.watch, "watch", 0, "repeat, with a pause of `TIME`, until interrupted")
	f.Lookup("watch").NoOptDefVal = "2s"
	return c
}

// memorying holds the flags of the command memory.
type memorying struct {
	format, most string
	contents     bool
	watch        time.Duration
}

func (m *memorying) run(ctx context.Context, args []string) error {
	most, err := notebook.ParseMemory(m.most)
	if err != nil {
		return fmt.Errorf("--max-memory %w", err)
	}
	if m.watch < 0 {
		return fmt.Errorf("--watch %v: must be a positive time, such as 2s", m.watch)
	}
	for {
		a, err := accountFor(ctx, args, memory.Options{Contents: m.contents, Most: most})
		if err != nil && m.watch > 0 && ctx.Err() != nil {
			return nil // the interrupt is how --watch ends
		}
		if err != nil {
			return err
		}
		if m.format == "json" {
			err = writeJSON(os.Stdout, a)
		} else {
			if m.watch > 0 && term.IsTerminal(int(os.Stdout.Fd())) {
				fmt.Print("\x1b[H\x1b[J") // clear the screen
			}
			err = terminal.Memory(os.Stdout, a, len(args) > 0, screen(os.Stdout))
		}
		if err != nil || m.watch == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(m.watch):
		}
	}
}

// accountFor accounts for the memory of the named guests and processes; without names, of all.
func accountFor(ctx context.Context, args []string, o memory.Options) (*notebook.MemoryAccount, error) {
	guests, pids, err := live.Now(ctx)
	if err != nil {
		return nil, err
	}
	chosen, others, err := live.Choose(guests, pids, args)
	if err != nil {
		return nil, err
	}
	a := &notebook.MemoryAccount{At: time.Now(), Contents: o.Contents}
	s, err := memory.Scan(ctx, pids, o)
	var withheld *memory.Withheld
	switch {
	case errors.As(err, &withheld) && len(chosen) > 0:
		a.Withheld, a.Contents = withheld.Error(), false
		a.Guests, a.Missing = memory.Rollups(chosen)
	case err != nil:
		return nil, err
	default:
		defer s.Close()
		all := s.Account(slices.Concat(chosen, others))
		if a.Guests = all[:len(chosen)]; len(args) == 0 {
			a.Guests = all // the last entry is the rest of the host
		}
		a.Changed, a.Unread, a.Spilled = s.Changed, s.Unread, s.Spilled
		for _, p := range s.Processes {
			switch named := slices.ContainsFunc(chosen, func(g memory.Guest) bool { return slices.Contains(g.PIDs, p.PID) }); {
			case p.Err == nil:
				a.Scanned++
			case named:
				a.Missing = append(a.Missing, memory.Missing(p.PID, p.Err))
			default:
				a.Unseen++
			}
		}
	}
	a.Seconds = time.Since(a.At).Seconds()
	a.Guests = slices.DeleteFunc(a.Guests, func(g notebook.MemoryGuest) bool { return len(g.Processes) == 0 && g.Kind != notebook.MemoryHost })
	if len(a.Guests) == 0 {
		return nil, fmt.Errorf("memory: %s", strings.Join(a.Missing, " "))
	}
	return a, nil
}

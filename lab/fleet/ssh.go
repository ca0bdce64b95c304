//go:build linux

package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tare/lab/proc"
	"tare/lab/remote"
)

// SSH is a machine that the system's own ssh client reaches without questions: [USER@]HOST[:PORT]. Users other than root need sudo without a
// password there.
type SSH string

var address = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]{1,5})?$`)

// Hosts reads a list of machines: one on each line, and comments after #. It returns their names as nodes too.
func Hosts(list io.Reader) (machines []SSH, nodes []string, err error) {
	seen := map[string]bool{}
	s := bufio.NewScanner(list)
	for n := 1; s.Scan(); n++ {
		line, _, _ := strings.Cut(s.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		m := address.FindStringSubmatch(line)
		if m == nil || m[3] != "" && !isPort(m[3][1:]) {
			return nil, nil, fmt.Errorf("line %d: %q is not a machine: must be [USER@]HOST[:PORT]", n, line)
		}
		node := m[2] + strings.ReplaceAll(m[3], ":", "-")
		if seen[node] {
			return nil, nil, fmt.Errorf("line %d: %s is listed twice", n, line)
		}
		seen[node] = true
		machines, nodes = append(machines, SSH(line)), append(nodes, node)
	}
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	if len(machines) == 0 {
		return nil, nil, errors.New("it lists no machine")
	}
	return machines, nodes, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// asRoot runs its arguments as root.
const asRoot = `[ "$(id -u)" = 0 ] || set -- sudo -n -- "$@"; exec "$@"`

// Run implements Line.
func (s SSH) Run(ctx context.Context, in io.Reader, out, said io.Writer, args ...string) error {
	words := append([]string{"sh", "-c", asRoot, "sh"}, args...)
	cmd := exec.CommandContext(ctx, "ssh", "-aTx", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4",
		"-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "EscapeChar=none", "--", "ssh://"+string(s), remote.Command(words...))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, said
	cmd.WaitDelay = time.Second
	defer proc.Tie(cmd)() // a terminal's interrupt reaches only Tare, which ends the run in order
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: apt-get install openssh-client", err)
	}
	return err
}

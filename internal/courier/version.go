package courier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// versionWithin bounds how long a program may take to print its version before it is started,
// which delays the start; a program that loads an interpreter takes a second on a quiet machine. A
// program that takes longer is asked again while it runs.
const versionWithin = 20 * time.Second

type cachedVersion struct {
	Size    int64  `json:"size"`
	ModTime int64  `json:"modTime"`
	Text    string `json:"text"`
}

// Version asks a program for its version, or reads the cached answer of the same file: some
// programs take half a second to answer. The program is looked up and run in env; within bounds
// its answer. CodeNotFound if there is no such program; the reason is team.ReasonVersionLate if it
// does not answer in time.
func Version(ctx context.Context, home team.Home, argv, env []string, within time.Duration) (string, error) {
	path, err := LookPath(argv[0], env)
	if err != nil {
		return "", err
	}
	// The cache key is the file that the name leads to, but the program is run under its name:
	// version managers are one program behind many names.
	key := path
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		key = path + " -> " + real
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", team.Errorf(team.CodeNotFound, "find %s: %w", argv[0], err)
	}
	cache := filepath.Join(home.Dir, "versions.json")
	known := map[string]cachedVersion{}
	if data, err := regular.ReadFile(cache); err == nil {
		_ = json.Unmarshal(data, &known) // a broken cache is rebuilt
	}
	if c, ok := known[key]; ok && c.Size == info.Size() && c.ModTime == info.ModTime().UnixNano() {
		return c.Text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, argv[1:]...) // the member's own agent
	cmd.Env = env
	cmd.WaitDelay = time.Second
	// The program may be a script whose child holds the pipe: the whole group ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.Output()
	text, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if errors.Is(err, exec.ErrWaitDelay) { // it has succeeded, and what it has left keeps the pipe
		err = nil
	}
	if err != nil || text == "" {
		failed := team.Errorf(team.CodeUnavailable, "%s does not say its version: %w", path, errors.Join(err, ctx.Err()))
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			failed = failed.WithReason(team.ReasonVersionLate)
		}
		return "", failed
	}
	known[key] = cachedVersion{info.Size(), info.ModTime().UnixNano(), text}
	data, err := json.Marshal(known)
	if err != nil {
		return text, fmt.Errorf("note the version: %w", err)
	}
	_ = atomicfile.Write(cache, data, 0o600, false) // only a cache
	return text, nil
}

// LookPath finds a program on the PATH of an environment. CodeNotFound if there is none.
func LookPath(program string, env []string) (string, error) {
	if strings.ContainsRune(program, '/') {
		if isProgram(program) {
			return program, nil
		}
		return "", team.Errorf(team.CodeNotFound, "program %s does not exist", program).WithReason(team.ReasonNoProgram)
	}
	dirs := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = v
		}
	}
	for _, dir := range filepath.SplitList(dirs) {
		if p := filepath.Join(dir, program); filepath.IsAbs(p) && isProgram(p) {
			return p, nil
		}
	}
	return "", team.Errorf(team.CodeNotFound, "%s is not on the PATH", program).WithReason(team.ReasonNoProgram)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

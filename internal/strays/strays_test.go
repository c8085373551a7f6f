package strays

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A process without a parent in the tree is found and ended, with whatever it
// keeps starting; processes of other directories are not touched.
func TestEnd(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	dir := t.TempDir()
	mine, other := filepath.Join(dir, "mine"), filepath.Join(dir, "other")
	start := func(home, script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = append(os.Environ(), "HOME="+home+"/h")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	stranger := start(other, "exec sleep 600")
	// Found at once, even in the middle of its exec.
	alone := start(mine, "exec sleep 600")
	if left := Below(mine)(); !slices.Equal(left, []int{alone.Process.Pid}) {
		t.Errorf("found %v, want %d", Named(left), alone.Process.Pid)
	}
	start(mine, "trap '' TERM HUP; while :; do sh -c 'exec sleep 0.01' & wait; done")
	if err := End(Below(mine)); err != nil {
		t.Error(err)
	}
	if left := Below(mine)(); len(left) > 0 {
		t.Errorf("left: %v", Named(left))
	}
	ids := Of(func(env []byte) bool { return bytes.Contains(env, []byte("HOME="+other+"/h\x00")) })()
	if !slices.Equal(ids, []int{stranger.Process.Pid}) || !strings.HasSuffix(Named(ids)[0], "sleep 600") && !strings.Contains(Named(ids)[0], "exec sleep 600") {
		t.Errorf("the other's: %v", Named(ids))
	}
}

package fakecli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A program calls the hook of its session's end when its terminal is gone and when it is told to
// end, as the real ones do.
func TestSessionEnd(t *testing.T) {
	for name, end := range map[string]func(gone chan struct{}, told chan os.Signal){
		"terminal gone": func(gone chan struct{}, _ chan os.Signal) { close(gone) },
		"SIGTERM":       func(_ chan struct{}, told chan os.Signal) { told <- syscall.SIGTERM },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "in")
			h := &hookSet{ctx: t.Context(), base: obj{"session_id": "c1"}, events: map[string][]hookGroup{
				"SessionEnd": {{Hooks: []hookDef{{Command: "cat > " + file}}}},
			}}
			gone, told := make(chan struct{}), make(chan os.Signal, 1)
			end(gone, told)
			h.sessionEnd(gone, told)
			var in struct {
				Event   string `json:"hook_event_name"`
				Session string `json:"session_id"`
				Reason  string
			}
			data, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(data, &in)
			}
			if err != nil || in.Event != "SessionEnd" || in.Session != "c1" || in.Reason != "other" {
				t.Errorf("hook got %q, %v", data, err)
			}
		})
	}
}

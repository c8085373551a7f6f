package team

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Limits is the most that a member with everything below it may use. Zero means
// no limit.
type Limits struct {
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	PIDs        int64 `json:"pids,omitempty"`       // processes and threads
	CPUPercent  int   `json:"cpuPercent,omitempty"` // of one core: 150 is one and a half
}

// UnmarshalJSON reads limits as they are stored, and as people write them:
// {"memory": "2GiB", "pids": 200, "cpu": "150%"}.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var in struct {
		MemoryBytes int64   `json:"memoryBytes"`
		CPUPercent  int     `json:"cpuPercent"`
		PIDs        written `json:"pids"`
		Memory      written `json:"memory"`
		CPU         written `json:"cpu"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	w, err := ParseLimits(string(in.Memory), string(in.PIDs), string(in.CPU))
	if err != nil {
		return err
	}
	*l = Limits{MemoryBytes: cmp.Or(w.MemoryBytes, in.MemoryBytes), PIDs: w.PIDs, CPUPercent: cmp.Or(w.CPUPercent, in.CPUPercent)}
	return nil
}

// written is a text or a number, as a text.
type written string

func (w *written) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if data[0] != '"' {
		*w = written(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(w))
}

// IsZero reports whether nothing is limited.
func (l Limits) IsZero() bool { return l == Limits{} }

// Bounds of a limit. Below them nothing could be started, or it would hardly move.
const (
	MinMemory     = 16 << 20
	minPIDs       = 4
	maxPIDs       = 4 << 20 // the most that a kernel takes for a pid
	minCPUPercent = 1
	maxCPUPercent = 1 << 20
)

// Check is an error coded invalid for a limit that makes no sense.
func (l Limits) Check() error {
	switch {
	case l.MemoryBytes != 0 && l.MemoryBytes < MinMemory:
		return Errorf(CodeInvalid, "a memory limit of %s is too small", FormatSize(l.MemoryBytes)).WithHint("16MiB at least")
	case l.PIDs != 0 && (l.PIDs < minPIDs || l.PIDs > maxPIDs):
		return Errorf(CodeInvalid, "a limit of %d processes cannot be kept", l.PIDs).WithHint("4 to 4194304")
	case l.CPUPercent != 0 && (l.CPUPercent < minCPUPercent || l.CPUPercent > maxCPUPercent):
		return Errorf(CodeInvalid, "a limit of %d%% of a core cannot be kept", l.CPUPercent).WithHint("1% at least; 100% is one core")
	}
	return nil
}

// ParseLimits reads limits as people write them: "2GiB", "200", "150%". An empty
// text means no limit.
func ParseLimits(memory, pids, cpu string) (l Limits, err error) {
	if memory != "" {
		if l.MemoryBytes, err = ParseSize(memory); err != nil {
			return Limits{}, err
		}
	}
	if pids != "" {
		if l.PIDs, err = strconv.ParseInt(pids, 10, 64); err != nil || l.PIDs < 1 {
			return Limits{}, Errorf(CodeInvalid, "invalid number of processes %q", pids).WithHint("for example 200")
		}
	}
	if cpu != "" {
		text, ok := strings.CutSuffix(cpu, "%")
		if l.CPUPercent, err = strconv.Atoi(strings.TrimSpace(text)); err != nil || !ok || l.CPUPercent < 1 {
			return Limits{}, Errorf(CodeInvalid, "invalid share of a core %q", cpu).WithHint("for example 150% for one and a half")
		}
	}
	return l, l.Check()
}

// units of a size, in the order in which they are tried.
var units = []struct {
	name string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
}

// ParseSize reads a number of bytes: "2GiB", "512MB", "1.5 G" (a single letter is
// a power of 1024), or plain bytes.
func ParseSize(s string) (int64, error) {
	text, size := strings.TrimSpace(s), 1.0
	for _, u := range units {
		if n := len(text) - len(u.name); n > 0 && strings.EqualFold(text[n:], u.name) {
			text, size = strings.TrimSpace(text[:n]), u.size
			break
		}
	}
	bad := Errorf(CodeInvalid, "invalid size %q", s).WithHint("for example 2GiB or 512MiB")
	if strings.Trim(text, "0123456789.") != "" { // no sign, no exponent, no NaN
		return 0, bad
	}
	v, err := strconv.ParseFloat(text, 64)
	if v *= size; err != nil || v < 1 || v > math.MaxInt64/2 {
		return 0, bad
	}
	return int64(v), nil
}

// FormatSize writes bytes so that ParseSize reads about the same: "2GiB", "1.5MiB".
func FormatSize(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size {
			return strconv.FormatFloat(math.Round(float64(n)/float64(u.size)*100)/100, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

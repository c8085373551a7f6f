package team

import "testing"

func TestParseLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		memory, pids, cpu string
		want              Limits
	}{
		{"", "", "", Limits{}},
		{"2GiB", "200", "150%", Limits{2 << 30, 200, 150}},
		{"512MB", "", "", Limits{MemoryBytes: 512_000_000}},
		{"1.5 g", "", "1 %", Limits{MemoryBytes: 3 << 29, CPUPercent: 1}},
		{"16777216", "4", "", Limits{MemoryBytes: 16 << 20, PIDs: 4}},
		{"64mib", "", "", Limits{MemoryBytes: 64 << 20}},
	} {
		got, err := ParseLimits(c.memory, c.pids, c.cpu)
		if err != nil || got != c.want {
			t.Errorf("%q %q %q: %+v, %v; want %+v", c.memory, c.pids, c.cpu, got, err, c.want)
		}
	}
	for _, c := range [][3]string{
		{"lots"}, {"-1GiB"}, {"1e9"}, {"NaN"}, {"Inf"}, {"GiB"}, {"1KiB"}, {"99999999TiB"}, {"0"}, {"1.2.3M"},
		{"", "many"}, {"", "0"}, {"", "-3"}, {"", "3"}, {"", "99999999"},
		{"", "", "150"}, {"", "", "0%"}, {"", "", "%"}, {"", "", "-5%"}, {"", "", "half"},
	} {
		if got, err := ParseLimits(c[0], c[1], c[2]); !IsCode(err, CodeInvalid) {
			t.Errorf("%q: %+v, %v; want invalid", c, got, err)
		}
	}
}

func TestFormatSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		5: "5B", 16 << 20: "16MiB", 3 << 29: "1.5GiB", 2 << 40: "2TiB", 1 << 10: "1KiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
		if back, err := ParseSize(want); err != nil || back != n {
			t.Errorf("%s: %d, %v; want %d", want, back, err, n)
		}
	}
}

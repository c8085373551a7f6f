package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"text/template"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/team"
)

// Service is a unit of the person's own service manager that keeps a team's
// supervisor up across logins and reboots.
type Service struct {
	Path    string   `json:"path"`
	Text    string   `json:"text"`
	Enable  []string `json:"enable"`  // what to run to switch it on
	Disable []string `json:"disable"` // and off
}

// The kill mode lets the agents live when the supervisor is stopped or restarted:
// they are not its service's to end.
var systemdUnit = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("systemd").Parse(`[Unit]
Description=teamctl supervisor of team {{.Key}}

[Service]
Type=notify
NotifyAccess=main
ExecStart={{.Exe}} supervise --team {{.Key}}
ExecStartPost={{.Exe}} recover --team {{.Key}}
Environment=TEAMCTL_HOME={{.Home}}
{{- if .Runtime}}
Environment=TEAMCTL_RUNTIME_DIR={{.Runtime}}
{{- end}}
Environment=TEAMCTL_SUPERVISOR_IDLE=0
KillMode=process
Restart=on-failure
RestartSec=1
Delegate=yes
DelegateSubgroup=supervisor

[Install]
WantedBy=default.target
`))
})

var launchdPlist = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("launchd").Parse(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{{.Label}}</string>
  <key>ProgramArguments</key>
  <array><string>{{.Exe}}</string><string>supervise</string><string>--team</string><string>{{.Key}}</string></array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>TEAMCTL_HOME</key><string>{{.Home}}</string>
    <key>TEAMCTL_SUPERVISOR_IDLE</key><string>0</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
`))
})

// ServiceOf makes the unit of a team for an operating system ("" is this one)
// without writing it. exe is the absolute path of the program.
func ServiceOf(l team.Layout, exe, goos string) (Service, error) {
	if goos == "" {
		goos = runtime.GOOS
	}
	for _, p := range []string{exe, l.Home.Dir} {
		if strings.ContainsAny(p, "\n\"'<>&%\\ ") {
			return Service{}, team.Errorf(team.CodeInvalid, "a service file cannot hold the path %q", p).
				WithHint("use paths without spaces and quotes")
		}
	}
	conf, err := os.UserConfigDir()
	if err != nil {
		return Service{}, team.Errorf(team.CodeUnavailable, "find the configuration directory: %w", err)
	}
	label := "teamctl-" + l.Key
	facts := map[string]string{
		"Key": l.Key, "Exe": exe, "Home": l.Home.Dir, "Label": label, "Runtime": os.Getenv(team.EnvRuntime),
	}
	var b bytes.Buffer
	if goos == "darwin" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Service{}, team.Errorf(team.CodeUnavailable, "find the home directory: %w", err)
		}
		path := filepath.Join(home, "Library", "LaunchAgents", label+".plist")
		err = launchdPlist().Execute(&b, facts)
		return Service{
			Path: path, Text: b.String(),
			Enable: []string{"launchctl load -w " + path}, Disable: []string{"launchctl unload -w " + path},
		}, err
	}
	err = systemdUnit().Execute(&b, facts)
	return Service{
		Path: filepath.Join(conf, "systemd", "user", label+".service"), Text: b.String(),
		Enable:  []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + label},
		Disable: []string{"systemctl --user disable --now " + label},
	}, err
}

// InstallService writes the unit; nothing is switched on. It refuses to replace a
// file that says something else unless replace is set.
func InstallService(s Service, replace bool) error {
	old, err := os.ReadFile(s.Path)
	switch {
	case err == nil && string(old) == s.Text:
		return nil
	case err == nil && !replace:
		return team.Errorf(team.CodeConflict, "%s is there and different", s.Path).WithReason("service_exists").
			WithHint("look at it, then add --replace")
	case err != nil && !os.IsNotExist(err):
		return team.Errorf(team.CodeUnavailable, "read %s: %w", s.Path, err)
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return team.Errorf(team.CodeUnavailable, "make %s: %w", filepath.Dir(s.Path), err)
	}
	if err := atomicfile.Write(s.Path, []byte(s.Text), 0o644, false); err != nil {
		return team.Errorf(team.CodeUnavailable, "write %s: %w", s.Path, err)
	}
	return nil
}

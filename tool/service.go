package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"text/template"
	"unicode"

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
// they are not its service's to end. That a member could not be recovered is no reason
// to end the supervisor of the others: the minus sign. Many are recovered one after the
// other, within the time of the start. And while a supervisor runs that some command has
// started, this one fails: it is tried again, more and more rarely, and never given up.
var systemdUnit = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("systemd").Parse(`[Unit]
Description=teamctl supervisor of team {{.Key}}
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={{.Exe}} supervise --team {{.Key}}
ExecStartPost=-{{.Exe}} recover --team {{.Key}}
TimeoutStartSec=10min
{{- range .Env}}
Environment={{.Unit}}
{{- end}}
KillMode=process
Restart=on-failure
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
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
{{- range .Env}}
    <key>{{.Name}}</key><string>{{.XML}}</string>
{{- end}}
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
	facts := struct {
		Key, Exe, Label string
		Env             []variable
	}{l.Key, exe, label, serviceEnv(l)}
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
		Enable: []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + label,
			"loginctl enable-linger"}, // else it is up only while the person is logged in
		Disable: []string{"systemctl --user disable --now " + label},
	}, err
}

// variable is one of the unit's environment.
type variable struct{ Name, Value string }

// serviceEnv is what the supervisor needs of the environment that the service manager
// does not have: where the team is, and where the agents' programs are found, which
// often lie in the person's own directories.
func serviceEnv(l team.Layout) []variable {
	env := []variable{{team.EnvHome, l.Home.Dir}}
	for _, name := range []string{team.EnvRuntime, "PATH"} {
		if v := os.Getenv(name); v != "" && !strings.ContainsFunc(v, unicode.IsControl) {
			env = append(env, variable{name, v})
		}
	}
	return append(env, variable{"TEAMCTL_SUPERVISOR_IDLE", "0"})
}

// Unit is the variable as systemd reads it.
func (v variable) Unit() string {
	text := v.Name + "=" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(v.Value)
	if strings.ContainsAny(text, "\\\"' ") {
		return `"` + text + `"`
	}
	return text
}

// XML is its value as launchd reads it.
func (v variable) XML() string {
	return template.HTMLEscapeString(v.Value) // whose entities are XML's too
}

// InstallService writes the unit; nothing is switched on. It refuses to replace a
// file that says something else unless replace is set.
func InstallService(s Service, replace bool) error {
	old, err := os.ReadFile(s.Path)
	switch {
	case err == nil && string(old) == s.Text:
		return nil
	case err == nil && !replace:
		return team.Errorf(team.CodeConflict, "%s is there and different", s.Path).WithReason(team.ReasonServiceExists).
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

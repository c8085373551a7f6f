package team

import "path/filepath"

// EnvToken is the secret that proves the identity in EnvAgentID. It is new for
// every generation of a member; the ledger keeps its hash only.
const EnvToken = "TEAMCTL_TOKEN"

// Token is the file of the member's secret, 0600: for what has no environment of
// its own from the member, such as a hook.
func (b Bundle) Token() string { return filepath.Join(string(b), "token") }

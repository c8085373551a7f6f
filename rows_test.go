package teamctl_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// byRow names the tests of each requirement on the built-in agent that holds, by its number
// in the requirements: "DIR Test", or "script NAME".
var byRow = map[int]string{
	167: "ledger TestThreePrimitives",
	168: "ledger TestClaimsAtOnce; ledger TestSessionsKeepEverything",
	169: "internal/sink TestGate",
	170: "agent TestRequestsExtend; agent/program TestMemoryOfAnAgent; script lead",
	171: "ledger TestHops; ledger TestAnnounceHops; tool TestSendToASession; agent/llm TestRepeats",
	172: "agent TestChildrenKilledAtEveryStep; tool TestChildrenOfASession; script children",
	173: "team TestAgentSpec; ledger TestSpecs",
	174: "team TestAgentSpec; script chat",
	175: "team TestFilter; agent/tools TestFilter; agent/program TestSkillsListedAreLoaded",
	176: "agent/program TestMemoryOfAnAgent",
	177: "agent/skills TestOverlays",
	178: "ledger TestSpecs; ledger TestSchemaIsAsDocumented",
	179: "script agents_specs",
	180: "ledger TestTakeIn; ledger TestChildSessions; tool TestSessionsCarryTeamAndRole",
	181: "ledger TestThreePrimitives; ledger TestChildSessions",
	182: "internal/sink TestGate",
	183: "ledger TestTakeIn",
	184: "internal/sink TestGate",
	185: "agent/llm TestMessagesAlternate; ledger TestTakeIn",
	186: "tool TestChildrenOfASession; script children",
	187: "ledger TestChildSessions; tool TestChildrenOfASession",
	188: "tool TestSendToASession; script children",
	189: "ledger TestAnnouncedEnds",
	190: "ledger TestAnnounce; agent TestAnnounceStorm",
	191: "ledger TestAnnounce",
	192: "ledger TestAnnouncedEnds; tool/op TestAnnouncesFitTheSchema",
	193: "ledger TestAnnouncedEnds; tool/op TestAnnouncesFitTheSchema",
	194: "ledger TestAnnouncedEnds; tool/op TestAnnouncesFitTheSchema",
	195: "ledger TestAnnouncedEnds; agent/program TestReports",
	196: "ledger TestAnnounce",
	197: "agent/program TestAnnounceBlock; agent TestAnnounceStorm",
	198: "ledger TestLanes; team TestLaneWidths",
	199: "script chat",
	200: "agent TestServeSteered; agent TestRequestsExtend",
	201: "agent TestServeSteered; agent TestSteerAtEveryMoment; ledger TestSteer; script mcp_servers; script llm_pane",
	202: "ledger TestSessionsKeepEverything",
	203: "ledger TestSteer; agent TestServeSteered",
	204: "ledger TestBacklogIsAcceptedWhenDrained; ledger TestBacklogFull",
	205: "ledger TestAnnounce; agent TestAnnounceStorm",
	206: "tool TestSendToASession",
	207: "ledger TestHops; ledger TestAnnounceHops; tool TestSendToASession",
	208: "ledger TestAnnounce; ledger TestCollectedAndRepeated; agent TestChildrenKilledAtEveryStep",
	209: "ledger TestSteer; ledger TestSessionsKeepEverything",
	210: "script chat",
	211: "script chat",
	212: "script chat",
	213: "script chat",
	214: "script chat",
	215: "script agents_specs; tool/op TestRefusalsByRole",
	216: "script agents_specs; tool TestNobodyGainsBySpecs",
	217: "agent/program TestSkillsListedAreLoaded",
	218: "agent/tools TestFilter; script hostile",
	219: "agent/tools TestFilter; script children",
	220: "agent/skills TestOverlays; script knows",
	221: "ledger/memory TestExport; ledger/memory TestRecall; script memory",
	222: "agent/program TestSkillsListedAreLoaded; script chat",
	223: "agent TestAnnounceStorm; script children",
	224: "script chat; ledger TestSteer",
	225: "tool TestOneshot; script children; script agents_specs",
}

// openRows are the requirements that do not hold yet, with what is missing.
var openRows = map[int]string{}

// TestRows167To225: each requirement on the built-in agent has tests, which exist, or it
// is said what is missing.
func TestRows167To225(t *testing.T) {
	t.Parallel()
	tests := testsByDir(t)
	for row := 167; row <= 225; row++ {
		named, holds := byRow[row]
		missing, open := openRows[row]
		if holds == open {
			t.Errorf("row %d: %d tests named, missing: %q", row, len(named), missing)
		}
		for _, by := range strings.Split(named, "; ") {
			dir, name, _ := strings.Cut(by, " ")
			ok := slices.Contains(tests[dir], name)
			if dir == "script" {
				_, err := os.Stat(filepath.Join("cmd/teamctl/testdata/script", name+".txtar"))
				ok = err == nil
			}
			if holds && !ok {
				t.Errorf("row %d: no test %q", row, by)
			}
		}
	}
}

// Package skills finds the texts that people keep for agents: skills, which an agent loads
// when it needs them, and overlays, which are a part of its instructions.
//
// A skill is a directory with a SKILL.md: YAML front matter with name and description, and
// a text behind it (https://agentskills.io/specification). Skills are looked for in the
// person's workspace and in .agents/skills and .teamctl/skills of the repository; of two
// with one name the first counts. A skill that cannot be read is left out and reported.
//
// Overlays are SOUL.md, TOOLS.md, USER.md and IDENTITY.md of the person's workspace, those
// of an agent before those of all, and AGENTS.md of the repository, from its root down to
// the directory where the agent works; CLAUDE.md where there is no AGENTS.md.
package skills

package remote

import "fmt"

// ownConfig is what every run of git is told. It goes by environment, which beats the
// configuration of a repository.
//
// fetch.fsckObjects stays off on purpose: it refuses old, harmless history for good (a
// missing space before an e-mail address, a mode of 100664), while what it would keep
// out can do nothing here. Nothing is ever checked out by git, and who reads objects has
// to expect any bytes in them.
func ownConfig() [][2]string {
	return [][2]string{
		{"core.hooksPath", "/dev/null"},
		{"core.fsmonitor", "false"},
		{"core.fsync", "committed,reference"},
		{"core.askPass", ""},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"submodule.recurse", "false"},
		{"fetch.recurseSubmodules", "false"},
		{"push.recurseSubmodules", "no"},
		{"push.followTags", "false"},
		{"push.gpgSign", "false"},
		{"fetch.writeCommitGraph", "false"},
		{"fetch.fsckObjects", "false"},
		{"fetch.prune", "false"},
		{"fetch.unpackLimit", "1"},
		{"transfer.advertiseSID", "false"},
		{"transfer.credentialsInUrl", "die"},
		{"advice.pushUpdateRejected", "false"},
		{"http.followRedirects", "initial"},
		// Memory: none of it may grow with what a server sends or a pod writes.
		{"pack.threads", "1"},
		{"index.threads", "1"},
		{"pack.windowMemory", "64m"},
		{"pack.deltaCacheSize", "32m"},
		{"core.deltaBaseCacheLimit", "64m"},
		{"core.bigFileThreshold", "32m"},
		{"core.packedGitWindowSize", "16m"},
		{"core.packedGitLimit", "256m"},
	}
}

// configVariables writes configuration as git reads it from the environment: unlike
// with -c, no other user sees it among a process's arguments.
func configVariables(config [][2]string) []string {
	variables := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(config))}
	for i, pair := range config {
		variables = append(variables,
			fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, pair[0]),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, pair[1]))
	}
	return variables
}

package readonly_test

const killVariable = "READONLY_TEST_KILL"

func runUntilKilled() {}

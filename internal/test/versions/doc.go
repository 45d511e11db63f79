// Package versions has tests that hold what docs/how-to/upgrade.md promises: programs work with records of every supported
// version, and programs of two versions can share a namespace until it is upgraded.
//
// testdata/v2.redis is a namespace that the first supported version of records has written, as commands of Redis. It
// is never written again: programs of later versions must work with it too. Each later version of records adds a file
// beside it, which this command makes:
//
//	go test ./internal/test/versions -run TestWriteFixture -write
package versions

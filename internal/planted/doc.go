// Command planted shows that the tests find bugs: it plants known ones in the Lua, one
// at a time, and runs the story, or the part of the suite, that must find each.
//
//	go run ./internal/planted                         all of them
//	go run ./internal/planted -list                   what there is
//	go run ./internal/planted -only "no fence in settle" -v
//	go run ./internal/planted -by stories             whether any story finds them
//	go run ./internal/planted -by model               whether another part does
//
// A bug is an edit of one file of lua/: a text that occurs in it exactly once, and what
// stands there instead. Each names what must find it: a story, which is then the only
// one that runs, on a real Redis; or, where no story can tell, a part of the suite
// (parts.go). A bug that its story does not find is not found, though another one would.
// Its time is that from the start of the test process to the first failure, and must be
// below 60 s. The command fails if a bug is not found, or later than that, or if its text
// is no longer there, so that the table in bugs*.go cannot rot; and first of all it runs
// all stories, and each part that is named, on the Lua as it is, which must pass.
//
// No file of the tree is touched, and no other code knows of this: the test binaries
// are built once, with an overlay in which package lua reads its files from a folder
// that the environment names, and not from what is embedded (build.go). A bug that the
// suite does not find is a hole in the suite: add the story that shows it, then the bug.
package main

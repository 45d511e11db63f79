// Package lua holds the calls that change state, and runs them.
//
// A file is one function, or one table of functions that own one kind of state, with the
// file's name; everything else in it is private. The files of call/ are what clients
// call. A file names those that it uses in its opening comment, and sees no others:
//
//	-- @use store/index
//	-- @use task/finish
//
// From them Load makes one library for FUNCTION LOAD, in which each file is made once, and
// for servers without Functions, or too full to take a library, a script for each call with
// the files that it reaches. What does not fit together (a missing file, a cycle, an
// unknown flag) is an error of Load, so a program finds out at its start.
//
// Lines that hold only a comment, and empty ones, are not sent. For this the
// loader does not need to understand Lua, as long as nothing spans lines that could
// look like a comment; so long brackets and strings continued with a backslash are
// refused. Errors still name the file and line that were written.
//
// [Library.Run] sends a call at most once: a reply that is lost is an error, and
// never a silent second run. The caller decides whether to repeat, and the calls
// are written so that it may.
package lua

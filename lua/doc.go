// Package lua holds the scripts that change state, and runs them.
//
// A script is a file of this folder, what several scripts need is a file of
// include/. A script names its includes in its opening comment:
//
//	-- Flags    allow-oom        a full Redis must still drain
//	--
//	-- @include keys
//	-- @include finish
//
// Load composes each script into one text. Every include is put in once, after
// the includes that it names itself and before its first user. What does not fit
// together (a missing file, a cycle, an unknown flag) is an error of Load, so a
// program finds out at its start.
//
// Lines that hold only a comment, and empty ones, are not sent. For this the
// loader does not need to understand Lua, as long as nothing spans lines that could
// look like a comment; so long brackets and strings continued with a backslash are
// refused. Errors still name the file and line that were written.
//
// [Library.Run] sends a script at most once: a reply that is lost is an error, and
// never a silent second run. The caller decides whether to repeat, and the scripts
// are written so that it may.
package lua

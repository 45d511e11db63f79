package main

import "slices"

// kinds holds all bugs. Each has its name, its file, the text to replace, the text planted
// in its place, and the story, or the part of the suite, that must find it.
var kinds = [][]bug{settleBugs, repairBugs, fetchBugs, leaseBugs, lineBugs, timeBugs, retryBugs, sweepBugs, childBugs,
	enqueueBugs, keyBugs, hookBugs, promiseBugs, controlBugs, cancelBugs, signalBugs, recordBugs,
	suspendBugs, waitBugs, wakeBugs, collectBugs, unitBugs, figureBugs, readBugs}

var bugs = slices.Concat(kinds...)

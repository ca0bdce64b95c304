// Package words turns values into English: the one place where numbers, intervals, treatments and doubts become text for
// people. It knows what things are called and how exactly a number is known, and nothing of where the text goes.
//
// Text of unknown origin, such as what a guest printed or a user named, passes through [Plain] before it is shown.
package words

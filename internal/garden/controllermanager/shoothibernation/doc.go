// Package shoothibernation hibernates and wakes up Shoots by the schedules in their specification, each in its own
// time zone. A time that was missed while the controller was down is made up for if it is not too long ago.
//
// It may import API types, the kit beside it and the component package.
package shoothibernation

package checks

import (
	"fmt"
	"sync"
)

// State is what a member of a group has and has read; the client's callbacks tell it.
type State struct {
	mutex    sync.Mutex
	assigned map[int32]bool
	seen     map[string]bool
}

// NewState has nothing.
func NewState() *State {
	return &State{assigned: map[int32]bool{}, seen: map[string]bool{}}
}

// Assign adds partitions.
func (s *State) Assign(partitions []int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, partition := range partitions {
		s.assigned[partition] = true
	}
}

// Revoke takes partitions away.
func (s *State) Revoke(partitions []int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, partition := range partitions {
		delete(s.assigned, partition)
	}
}

// See remembers a record.
func (s *State) See(partition int32, offset int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.seen[fmt.Sprintf("%d:%d", partition, offset)] = true
}

// Assigned copies the partitions that are assigned.
func (s *State) Assigned() map[int32]bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return copied(s.assigned)
}

// Seen copies what was read.
func (s *State) Seen() map[string]bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return copied(s.seen)
}

func copied[K comparable](from map[K]bool) map[K]bool {
	into := make(map[K]bool, len(from))
	for key := range from {
		into[key] = true
	}
	return into
}

func common[K comparable](one, other map[K]bool) int {
	count := 0
	for key := range one {
		if other[key] {
			count++
		}
	}
	return count
}

// Member is one member: its state, and how it commits and leaves.
type Member struct {
	*State
	Leave func() error
}

// Group is what a group check needs of a client: writing a number of records to four partitions in turn, and one more member.
type Group struct {
	Produce func(topic string, count int) error
	Join    func(topic string) (Member, error)
}

// Rebalance lets two members share four partitions, read 200 records, and one leave.
func (g Group) Rebalance(topic string) error {
	if err := g.Produce(topic, 100); err != nil {
		return err
	}
	first, err := g.Join(topic)
	if err != nil {
		return err
	}
	if err := Await("one member has all partitions", func() bool { return len(first.Assigned()) == 4 }); err != nil {
		return err
	}
	second, err := g.Join(topic)
	if err != nil {
		return err
	}
	err = Await("two members share them", func() bool {
		one, other := first.Assigned(), second.Assigned()
		return len(one) == 2 && len(other) == 2 && common(one, other) == 0
	})
	if err != nil {
		return err
	}
	if err := g.Produce(topic, 100); err != nil {
		return err
	}
	err = Await("they read everything", func() bool {
		one, other := first.Seen(), second.Seen()
		return len(one)+len(other)-common(one, other) == 200
	})
	if err != nil {
		return err
	}
	if err := second.Leave(); err != nil {
		return err
	}
	if err := Await("the first has all again", func() bool { return len(first.Assigned()) == 4 }); err != nil {
		return err
	}
	return first.Leave()
}

// Resume lets a second member go on where the first stopped.
func (g Group) Resume(topic string) error {
	before, err := g.readAll(topic, 100)
	if err != nil {
		return err
	}
	after, err := g.readAll(topic, 40)
	if err != nil {
		return err
	}
	if err := Equal(40, len(after), "records that the second read"); err != nil {
		return err
	}
	return Equal(0, common(before, after), "records that both read")
}

func (g Group) readAll(topic string, count int) (map[string]bool, error) {
	if err := g.Produce(topic, count); err != nil {
		return nil, err
	}
	member, err := g.Join(topic)
	if err != nil {
		return nil, err
	}
	err = Await(fmt.Sprintf("a member reads %d records", count), func() bool { return len(member.Seen()) >= count })
	if left := member.Leave(); err == nil {
		err = left
	}
	return member.Seen(), err
}

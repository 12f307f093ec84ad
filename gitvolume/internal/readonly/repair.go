package readonly

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/store"
)

// setAside sets the repository aside; the next that is fetched comes into a new one. It
// gives why, and what else went wrong.
func setAside(ctx context.Context, r store.Repository, why error) error {
	instance, err := r.Instance()
	if err == nil {
		_, err = r.SetAside(ctx, instance, why.Error())
	}
	return errors.Join(why, err)
}

// repair brings back what the tree of a checkout is compared with. If the repository has
// it, something else of it is broken: then it is set aside.
func (s source) repair(ctx context.Context, c *checkout, why error) error {
	held, err := s.followers.tree(c.key, nil).Commit()
	if err != nil {
		return errors.Join(why, err)
	}
	if kept, err := s.followers.kept(ctx, c.repository, c.key, store.AnchorTip); err == nil && kept == held {
		return setAside(ctx, s.repository, why)
	}
	if _, err := s.fetch(ctx, map[string]string{held.String(): store.CheckoutRef(c.key, store.AnchorTip)}, s.inTurn); err != nil {
		return fmt.Errorf("the node's repository was lost, and the commit %s that the tree holds is not to be had: %w", held, err)
	}
	return nil
}

package readonly

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/store"
)

// repair brings back what the tree of a checkout is compared with. If the repository has
// it, something else of it is broken: then it is set aside, and the next round fills a new
// one.
func (s source) repair(ctx context.Context, c *checkout, why error) error {
	held, err := s.followers.tree(c.key, nil).Commit()
	if err != nil {
		return errors.Join(why, err)
	}
	has, instance, err := s.has(ctx, c, held.String())
	if err != nil {
		return errors.Join(why, err)
	}
	if has {
		_, err := s.repository.SetAside(ctx, instance, why.Error())
		return errors.Join(why, err)
	}
	if _, err := s.fetch(ctx, map[string]string{held.String(): store.CheckoutRef(c.key, store.AnchorTip)}, s.inTurn); err != nil {
		return fmt.Errorf("the node's repository was lost, and the commit %s that the tree holds is not to be had: %w", held, err)
	}
	return nil
}

// has tells whether the repository can be read and has the commit that the checkout holds,
// so that its loss is not what is wrong.
func (s source) has(ctx context.Context, c *checkout, held string) (bool, store.Identity, error) {
	release, err := s.repository.Use(ctx)
	if err != nil {
		return false, store.Identity{}, err
	}
	defer release()
	instance, err := s.repository.Instance()
	if err != nil {
		return false, store.Identity{}, err
	}
	repo, err := history.Open(s.repository.Dir())
	if err != nil {
		return true, instance, nil // It cannot be read at all.
	}
	defer repo.Close()
	kept, err := repo.Ref(store.CheckoutRef(c.key, store.AnchorTip))
	return err == nil && kept.String() == held, instance, nil
}

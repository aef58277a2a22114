package leastprivilege

func unseenReasons() map[string]map[string]string { return nil }

"""What `wakebell dev` needs; nothing else imports it."""

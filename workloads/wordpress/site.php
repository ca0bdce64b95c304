<?php
// The site's configuration, which replaces wp-config.php. Debian's reads /etc/wordpress, which the image does not have.
define( 'ABSPATH', '/usr/share/wordpress/' );
define( 'WP_CONTENT_DIR', ABSPATH . 'wp-content' );

// The site answers under any address and port.
define( 'WP_HOME', 'http://' . $_SERVER['HTTP_HOST'] );
define( 'WP_SITEURL', WP_HOME );

define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'wordpress' );
define( 'DB_PASSWORD', 'wordpress' ); // the database answers only on a Unix socket of its guest
define( 'DB_HOST', 'localhost:' . getenv( 'TARE_SCRATCH' ) . '/state/mariadb.sock' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
$table_prefix = 'wp_';

// These are not secrets, because nobody signs in. Without them WordPress would make random ones.
foreach ( array( 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ) as $tare_key ) {
	define( $tare_key . '_KEY', 'key of ' . $tare_key );
	define( $tare_key . '_SALT', 'salt of ' . $tare_key );
}

// Serves only the requested pages: no network, no updates, and no jobs that a request triggers.
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'WP_AUTO_UPDATE_CORE', false );
define( 'DISABLE_WP_CRON', true );
define( 'DISALLOW_FILE_MODS', true );

error_reporting( E_ALL & ~E_DEPRECATED & ~E_NOTICE );
require_once ABSPATH . 'wp-settings.php';

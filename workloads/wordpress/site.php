<?php
// The site's configuration, in the place of wp-config.php: Debian's reads /etc/wordpress, which the image does not have.
define( 'ABSPATH', '/usr/share/wordpress/' );
define( 'WP_CONTENT_DIR', ABSPATH . 'wp-content' );

// The site answers under whatever address and port it is asked.
define( 'WP_HOME', 'http://' . $_SERVER['HTTP_HOST'] );
define( 'WP_SITEURL', WP_HOME );

define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'wordpress' );
define( 'DB_PASSWORD', 'wordpress' ); // the database answers on a Unix socket of its guest only
define( 'DB_HOST', 'localhost:' . getenv( 'TARE_SCRATCH' ) . '/state/mariadb.sock' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
$table_prefix = 'wp_';

// No secrets to keep: nobody signs in. They stand here so that WordPress does not make random ones.
foreach ( array( 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ) as $tare_key ) {
	define( $tare_key . '_KEY', 'key of ' . $tare_key );
	define( $tare_key . '_SALT', 'salt of ' . $tare_key );
}

// Nothing but the pages that are asked for: no network, no updates, no jobs that a request sets off.
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'WP_AUTO_UPDATE_CORE', false );
define( 'DISABLE_WP_CRON', true );
define( 'DISALLOW_FILE_MODS', true );

error_reporting( E_ALL & ~E_DEPRECATED & ~E_NOTICE );
require_once ABSPATH . 'wp-settings.php';

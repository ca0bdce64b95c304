<?php
// Replaces WordPress's index.php, wp-blog-header.php and wp-load.php, which would look for their configuration in the image.
define( 'WP_USE_THEMES', true );
require getenv( 'TARE_WORK' ) . '/site.php';
wp();
require ABSPATH . WPINC . '/template-loader.php';
